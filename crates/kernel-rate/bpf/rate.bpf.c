/* Explicit rate in the kernel's TCP.
 *
 * Source: L. G. Roberts' explicit-rate TCP with in-band QoS signalling, TIA-1039 (2006), the sender's part, as
 * in the engine's cc/explicit_rate.rs. The agent negotiates; here a socket uses what it was granted:
 *   pace = AR mss / (mss + headers) from the first segment on, cwnd = 3 AR RTT + 32 segments, no reduction on
 *     loss; the kernel's own loss detection and retransmission
 *   lost > threshold by five standard deviations over max(4096 packets, 4 RTT), or two timeouts in a row:
 *     the rate is not trusted any more on this connection
 *   after 2 s of silence: 10 segments until the rate is confirmed
 * A socket that has no rate keeps its own congestion control: only one with an entry in `rates` gets
 * `bent_rate`, from the cgroup's program, at its start or at a later round trip. When the entry is gone, or the
 * agent has not renewed the lease for 2 s, the socket goes on under the kernel's `cubic` from the window that
 * its rate needs; after a fallback it starts from 10 segments, as on a new connection.
 * Deviations: no request of its own after a fallback; no copies of segments while the path is idle.
 */
#include "kernel.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Values of the Rust side: src/loaded.rs. */
struct key {
	u8 local[16];  /* IPv4 as ::ffff:a.b.c.d */
	u8 remote[16];
	u16 local_port;
	u16 remote_port;
};

struct rate {
	u64 bytes_per_second;  /* of IP packets */
	u64 confirmed_at;
	u32 rtt_us;            /* before the kernel has measured one */
	u16 extra;             /* bytes that the agent adds to each packet */
	u16 threshold;         /* share of lost packets in 1/1000 */
};

/* Set before the program is loaded. Each agent has a program of its own, under a name of its own. */
const volatile struct {
	char name[16];
	u32 network;  /* number of the network namespace whose sockets may get rates */
} settings = { .name = "bent_rate" };

struct prefix {
	u32 length;
	u8 address[16];
};

struct own {
	u64 window_at;      /* start of the window in which losses are counted */
	u64 heard_at;
	u64 silent_since;   /* 0: it was not silent */
	u32 delivered;
	u32 lost;
	u32 active;
	u32 fallen;
};

struct {
	NUMBER(type, BPF_MAP_TYPE_HASH);
	NUMBER(max_entries, 65536);
	TYPE(key, struct key);
	TYPE(value, struct rate);
} rates SEC(".maps");

struct {
	NUMBER(type, BPF_MAP_TYPE_LPM_TRIE);
	NUMBER(max_entries, 4096);
	NUMBER(map_flags, BPF_F_NO_PREALLOC);
	TYPE(key, struct prefix);
	TYPE(value, u32);
} peers SEC(".maps");

/* The time of the last renewal. */
struct {
	NUMBER(type, BPF_MAP_TYPE_ARRAY);
	NUMBER(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, u64);
} lease SEC(".maps");

enum { ADOPTED, FELL_BACK, LEFT, REFUSED, COUNTS };

struct {
	NUMBER(type, BPF_MAP_TYPE_ARRAY);
	NUMBER(max_entries, COUNTS);
	TYPE(key, u32);
	TYPE(value, u64);
} counts SEC(".maps");

struct {
	NUMBER(type, BPF_MAP_TYPE_SK_STORAGE);
	NUMBER(map_flags, BPF_F_NO_PREALLOC);
	TYPE(key, int);
	TYPE(value, struct own);
} sockets SEC(".maps");

#define SECOND 1000000000ULL
#define LEASE (2 * SECOND)
#define SILENCE (2 * SECOND)
#define PACKETS 4096
#define ROUNDS 4
#define INITIAL 10
#define SPARE 32
#define LARGEST_WINDOW (1 << 20)

INLINE void count(u32 what)
{
	u64 *n = map_lookup(&counts, &what);

	if (n)
		__sync_fetch_and_add(n, 1);
}

INLINE void set_v4(u8 *to, u32 address)
{
	__builtin_memset(to, 0, 10);
	to[10] = to[11] = 0xff;
	__builtin_memcpy(to + 12, &address, 4);
}

INLINE void set_v6(u8 *to, struct in6_addr *address)
{
	u32 words[4] = { address->in6_u.u6_addr32[0], address->in6_u.u6_addr32[1], address->in6_u.u6_addr32[2],
			 address->in6_u.u6_addr32[3] };

	__builtin_memcpy(to, words, 16);
}

INLINE int key_of(struct tcp_sock *tp, struct key *key)
{
	struct sock_common *sk = &tp->inet_conn.icsk_inet.sk.__sk_common;
	u16 family = sk->skc_family;

	if (family == FAMILY_V4) {
		set_v4(key->local, sk->skc_rcv_saddr);
		set_v4(key->remote, sk->skc_daddr);
	} else if (family == FAMILY_V6) {
		set_v6(key->local, &sk->skc_v6_rcv_saddr);
		set_v6(key->remote, &sk->skc_v6_daddr);
	} else {
		return 0;
	}
	key->local_port = sk->skc_num;
	key->remote_port = __builtin_bswap16(sk->skc_dport);
	return 1;
}

/* The rate of a socket; none if the agent does not renew the lease. */
INLINE struct rate *rate_of(struct tcp_sock *tp, u64 now)
{
	struct key key = {};
	u32 zero = 0;
	u64 *renewed = map_lookup(&lease, &zero);

	if (!renewed || now - *renewed > LEASE || !key_of(tp, &key))
		return 0;
	return map_lookup(&rates, &key);
}

INLINE void forget_losses(struct tcp_sock *tp, struct own *own, u64 now)
{
	own->window_at = now;
	own->delivered = tp->delivered;
	own->lost = tp->lost;
}

INLINE u64 srtt_us(struct tcp_sock *tp, struct rate *rate)
{
	u32 srtt = tp->srtt_us >> 3;

	if (srtt)
		return srtt;
	return rate->rtt_us ? rate->rtt_us : 1000000;
}

/* Uses the rate. */
INLINE void use(struct tcp_sock *tp, struct own *own, struct rate *rate)
{
	struct sock *sk = &tp->inet_conn.icsk_inet.sk;
	u64 mss = tp->mss_cache, bytes = rate->bytes_per_second, window;
	u64 headers = tp->tcp_header_len + rate->extra;

	headers += sk->__sk_common.skc_family == FAMILY_V6 ? HEADER_V6 : HEADER_V4;
	if (!mss)
		return;
	/* the kernel's pacer counts payload */
	sk->sk_pacing_rate = bytes * mss / (mss + headers);
	window = 3 * bytes / 1000 * (srtt_us(tp, rate) / 1000 + 1) / (mss + headers) + SPARE;
	if (window > LARGEST_WINDOW)
		window = LARGEST_WINDOW;
	if (own->silent_since > rate->confirmed_at && window > INITIAL)
		window = INITIAL;
	tp->snd_cwnd = window;
	tp->snd_ssthresh = INFINITE_SSTHRESH;
}

/* Lost and delivered packets since the window began. */
INLINE int loses_too_much(struct tcp_sock *tp, struct own *own, struct rate *rate, u64 now)
{
	u64 lost = tp->lost - own->lost, all = lost + (u32)(tp->delivered - own->delivered);
	u64 share = rate->threshold, excess;

	if (all < PACKETS || now - own->window_at < ROUNDS * 1000 * srtt_us(tp, rate))
		return 0;
	forget_losses(tp, own, now);
	if (lost * 1000 <= share * all)
		return 0;
	/* five standard deviations of a binomial, squared */
	excess = lost * 1000 - share * all;
	return excess * excess > 25 * all * share * (1000 - share);
}

/* Hands the socket to the kernel's CUBIC. */
INLINE void leave(void *sk, struct tcp_sock *tp, struct own *own, u32 window)
{
	char cubic[16] = "cubic", reno[16] = "reno";

	own->active = 0;
	tp->snd_cwnd = window < INITIAL ? INITIAL : window;
	if (!own->fallen)
		tp->snd_ssthresh = tp->snd_cwnd;
	count(own->fallen ? FELL_BACK : LEFT);
	if (set_option(sk, LEVEL_TCP, OPTION_CONGESTION, cubic, sizeof(cubic)))
		set_option(sk, LEVEL_TCP, OPTION_CONGESTION, reno, sizeof(reno));
}

SEC("struct_ops/bent_init")
void bent_init(u64 *context)
{
	struct tcp_sock *tp = (void *)context[0];
	struct sock *sk = &tp->inet_conn.icsk_inet.sk;
	struct own *own = storage_of(&sockets, tp, 0, BPF_SK_STORAGE_GET_F_CREATE);
	u64 now = now_ns();
	struct rate *rate;

	if (!own)
		return;
	own->active = 1;
	own->heard_at = now;
	forget_losses(tp, own, now);
	/* without the queue discipline fq the kernel paces itself */
	if (!sk->sk_pacing_status)
		sk->sk_pacing_status = PACING_NEEDED;
	rate = rate_of(tp, now);
	if (rate)
		use(tp, own, rate);
}

SEC("struct_ops/bent_control")
void bent_control(u64 *context)
{
	struct tcp_sock *tp = (void *)context[0];
	struct own *own = storage_of(&sockets, tp, 0, 0);
	u64 now = now_ns();
	struct rate *rate = rate_of(tp, now);
	u32 window = tp->snd_cwnd;

	if (!own)
		return;
	own->heard_at = now;
	if (!rate) {
		/* after silence it is below the spare */
		leave(tp, tp, own, window > SPARE ? (window - SPARE) / 3 : 0);
		return;
	}
	if (own->silent_since > rate->confirmed_at &&
	    now - own->silent_since > SILENCE + 10000 * srtt_us(tp, rate))
		own->fallen = 1;
	if (loses_too_much(tp, own, rate, now))
		own->fallen = 1;
	if (own->fallen)
		leave(tp, tp, own, INITIAL);
	else
		use(tp, own, rate);
}

SEC("struct_ops/bent_state")
void bent_state(u64 *context)
{
	struct tcp_sock *tp = (void *)context[0];
	struct own *own = storage_of(&sockets, tp, 0, 0);

	/* the count is that of earlier timeouts without an acknowledgment in between */
	if (own && context[1] == STATE_LOSS && tp->inet_conn.icsk_retransmits >= 1)
		own->fallen = 1;
}

SEC("struct_ops/bent_event")
void bent_event(u64 *context)
{
	struct tcp_sock *tp = (void *)context[0];
	struct own *own = storage_of(&sockets, tp, 0, 0);
	u64 now = now_ns();

	if (!own || (u32)context[1] != EVENT_TX_START || now - own->heard_at <= SILENCE)
		return;
	own->silent_since = now;
	if (tp->snd_cwnd > INITIAL)
		tp->snd_cwnd = INITIAL;
}

SEC("struct_ops/bent_ssthresh")
u32 bent_ssthresh(u64 *context)
{
	return INFINITE_SSTHRESH;
}

SEC("struct_ops/bent_undo")
u32 bent_undo(u64 *context)
{
	struct tcp_sock *tp = (void *)context[0];

	return tp->snd_cwnd;
}

/* The window is three times what the path holds: the buffer need not be a multiple of it. */
SEC("struct_ops/bent_buffer")
u32 bent_buffer(u64 *context)
{
	return 2;
}

SEC(".struct_ops.link")
struct tcp_congestion_ops bent_rate = {
	.init = (void *)bent_init,
	.ssthresh = (void *)bent_ssthresh,
	.cong_control = (void *)bent_control,
	.set_state = (void *)bent_state,
	.cwnd_event = (void *)bent_event,
	.undo_cwnd = (void *)bent_undo,
	.sndbuf_expand = (void *)bent_buffer,
	.name = "bent_rate",
};

/* Gives a socket its rate. */
INLINE void adopt(struct bpf_sock_ops *ops, struct tcp_sock *tp)
{
	char name[16];
	struct own *own;

	for (int i = 0; i < 16; i++)
		name[i] = settings.name[i];
	if (!rate_of(tp, now_ns()))
		return;
	own = storage_of(&sockets, tp, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!own || own->active || own->fallen)
		return;
	if (set_option(ops, LEVEL_TCP, OPTION_CONGESTION, name, sizeof(name))) {
		own->fallen = 1;
		count(REFUSED);
	} else {
		count(ADOPTED);
	}
}

SEC("sockops")
int bent_sockets(struct bpf_sock_ops *ops)
{
	struct bpf_sock *sk = ops->sk;
	u32 op = ops->op;
	struct prefix peer = { .length = 128 };
	struct tcp_sock *tp;
	struct key key = {};

	if (!sk || (op != BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB && op != BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB &&
		    op != BPF_SOCK_OPS_RTT_CB))
		return 1;
	tp = to_tcp_sock(sk);
	if (!tp || tp->inet_conn.icsk_inet.sk.__sk_common.skc_net.net->ns.inum != settings.network)
		return 1;
	if (op != BPF_SOCK_OPS_RTT_CB) {
		if (!key_of(tp, &key))
			return 1;
		__builtin_memcpy(peer.address, key.remote, 16);
		if (!map_lookup(&peers, &peer))
			return 1;
		set_callbacks(ops, ops->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_RTT_CB_FLAG);
	}
	adopt(ops, tp);
	return 1;
}

/* What the program uses of the kernel. Fields are found by name when it is loaded (CO-RE), so a structure
 * lists only those that are read or written. */
#pragma once

#include <linux/bpf.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
#define KERNEL __attribute__((preserve_access_index))
#define NUMBER(name, value) int(*name)[value]
#define TYPE(name, type) type *name

/* Helper functions of the kernel, by their numbers (linux/bpf.h). */
static void *(*const map_lookup)(void *map, const void *key) = (void *)BPF_FUNC_map_lookup_elem;
static u64 (*const now_ns)(void) = (void *)BPF_FUNC_ktime_get_ns;
static long (*const set_option)(void *sk, int level, int name, void *value, int len) =
	(void *)BPF_FUNC_setsockopt;
static long (*const set_callbacks)(struct bpf_sock_ops *ops, int flags) =
	(void *)BPF_FUNC_sock_ops_cb_flags_set;
static void *(*const storage_of)(void *map, void *sk, void *value, u64 flags) =
	(void *)BPF_FUNC_sk_storage_get;
static struct tcp_sock *(*const to_tcp_sock)(void *sk) = (void *)BPF_FUNC_skc_to_tcp_sock;

struct in6_addr {
	union {
		u32 u6_addr32[4];
	} in6_u;
} KERNEL;

struct ns_common {
	unsigned int inum;
} KERNEL;

struct net {
	struct ns_common ns;
} KERNEL;

typedef struct {
	struct net *net;
} KERNEL possible_net_t;

struct sock_common {
	u32 skc_daddr;
	u32 skc_rcv_saddr;
	u16 skc_dport;
	u16 skc_num;
	u16 skc_family;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
} KERNEL;

struct sock {
	struct sock_common __sk_common;
	unsigned long sk_pacing_rate;
	u32 sk_pacing_status;
} KERNEL;

struct inet_sock {
	struct sock sk;
} KERNEL;

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	u8 icsk_retransmits;
} KERNEL;

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u16 tcp_header_len;
	u32 mss_cache;
	u32 snd_cwnd;
	u32 snd_ssthresh;
	u32 srtt_us;
	u32 delivered;
	u32 lost;
} KERNEL;

/* Not a copy of the kernel's: a subset, which is what the kernel compares by name. */
struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	void (*set_state)(struct sock *sk, u8 new_state);
	void (*cwnd_event)(struct sock *sk, u32 event);
	void (*cong_control)(struct sock *sk, u32 ack, int flag, const void *sample);
	u32 (*undo_cwnd)(struct sock *sk);
	u32 (*sndbuf_expand)(struct sock *sk);
	char name[16];
	void (*init)(struct sock *sk);
};

enum {
	FAMILY_V4 = 2,
	FAMILY_V6 = 10,
	LEVEL_TCP = 6,
	OPTION_CONGESTION = 13,
	STATE_LOSS = 4,      /* enum tcp_ca_state */
	EVENT_TX_START = 0,  /* enum tcp_ca_event: sending begins, nothing is in flight */
	PACING_NEEDED = 1,   /* enum sk_pacing */
	INFINITE_SSTHRESH = 0x7fffffff,
	HEADER_V4 = 20,
	HEADER_V6 = 40,
};

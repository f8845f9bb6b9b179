// bench/spine.toml in htsim (https://github.com/Broadcom/csg-htsim): two hosts, one link, one Reno connection.
//
//   make -C HTSIM/sim libhtsim.a
//   g++ -O3 -std=c++11 -w -I HTSIM/sim bench/htsim.cpp HTSIM/sim/libhtsim.a -o htsim-two-hosts
//   ./htsim-two-hosts LOSS SECONDS
//
// One run prints the data packets sent and the bytes acknowledged.
#include <cstdlib>
#include <iostream>
#include "config.h"
#include "eventlist.h"
#include "exoqueue.h"
#include "network.h"
#include "pipe.h"
#include "queue.h"
#include "tcp.h"

int main(int argc, char** argv) {
    if (argc != 3) {
        std::cerr << "usage: htsim-two-hosts LOSS SECONDS" << std::endl;
        return 2;
    }
    EventList& events = EventList::getTheEventList();
    events.setEndtime(timeFromSec(atof(argv[2])));
    srand(1);
    srandom(1);
    Packet::set_packet_size(1040);

    Queue queue(speedFromMbps((uint64_t)10), memFromPkt(701), events, NULL);
    ExoQueue loss(atof(argv[1]));
    Pipe there(timeFromMs(275), events), back(timeFromMs(275), events);
    TcpRtxTimerScanner timers(timeFromMs(10), events);
    TcpSrc source(NULL, NULL, events);
    TcpSink sink;
    source.set_ssthresh(1000 * 1040);
    source._maxcwnd = 1000 * 1040;
    timers.registerTcp(source);

    Route out, in;
    out.push_back(&queue);
    if (atof(argv[1]) > 0) out.push_back(&loss);
    out.push_back(&there);
    out.push_back(&sink);
    in.push_back(&back);
    in.push_back(&source);
    source.connect(out, in, sink, 0);
    while (events.doNextEvent()) {}
    std::cout << source._packets_sent / 1040 << "," << source._last_acked << std::endl;
}

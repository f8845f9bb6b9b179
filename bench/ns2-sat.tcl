# ns-2 reference scenarios for TCP over satellite links.
#
#   ns bench/ns2-sat.tcl key value key value ...
#
# One run prints one CSV line; "ns bench/ns2-sat.tcl header 1" prints the column names.
# Two topologies:
#   dumbbell : src_i --access-- A ==satellite== B --access-- dst_i   (scenarios A, C, D, E)
#   fair     : src_i --own path-- A ==bottleneck== B --1 ms-- dst_i  (scenario B)
# Delays are chosen so that the two-way propagation delay is exactly `rtt`.

array set P {
    header 0      scenario x     topo dumbbell  variant newreno seed 1
    flows 1       dur 100        rtt 0.550      bw 10e6
    accbw 10e6    accdelay 0.001 buf 50         rbuf 100000
    wnd 64        seg 1000       hdr 40         ack 40
    iw 2          delack 0       minrto 1.0     loss 0          ber 0
    spread 1.0    bytes 0        qsample 0.01   bare 0          trim 1
    flowsx 5      flowsy 5       rttx 0.550     rtty 0.200
    tick 0.01     overhead 0
}
foreach {k v} $argv {
    if {![info exists P($k)]} { puts stderr "unknown key: $k"; exit 2 }
    set P($k) $v
}

set columns {sim scenario variant seed flows loss ber seg wire rtt_s bw_bps buf
    wnd iw delack dur_s goodput_Bps flow_min_Bps flow_max_Bps jain rX_Bps rY_Bps
    segs_sent retx timeouts qdrops errloss maxq fct_s fct_est_s hops events run_wall_s}
if {$P(header)} { puts [join $columns ,]; exit 0 }

# Packet headers that are not used cost both time and memory; the usual ns-2 advice is to trim them.
if {$P(trim)} {
    remove-all-packet-headers
    add-packet-header IP TCP Flags
}

set ns [new Simulator]
$ns use-scheduler Calendar
ns-random $P(seed)
set rngStart [new RNG]; $rngStart seed [expr {1000 + $P(seed)}]
set rngErr   [new RNG]; $rngErr   seed [expr {500000 + 7919 * $P(seed)}]

Agent/TCP set packetSize_ $P(seg)
Agent/TCP set tcpip_base_hdr_size_ [expr {$P(hdr) > 0 ? $P(hdr) : 40}]
Agent/TCP set useHeaders_ [expr {$P(hdr) > 0}]
Agent/TCP set window_ $P(wnd)
Agent/TCP set windowInit_ $P(iw)
Agent/TCP set windowInitOption_ 1
Agent/TCP set minrto_ $P(minrto)
Agent/TCP set tcpTick_ $P(tick)
Agent/TCP set overhead_ $P(overhead)
Agent/TCPSink set packetSize_ $P(ack)
Agent/TCPSink/DelAck set interval_ 200ms
Agent/TCPSink/Sack1/DelAck set interval_ 200ms
set wire [expr {$P(seg) + $P(hdr)}]

# A TCP sender for a variant name; returns {sender sink}.
proc makePair {variant delack} {
    global ns P
    set sinkBase Agent/TCPSink
    set ca ""
    switch -glob -- $variant {
        tahoe   { set cls Agent/TCP }
        reno    { set cls Agent/TCP/Reno }
        newreno { set cls Agent/TCP/Newreno }
        sack    { set cls Agent/TCP/Sack1; set sinkBase Agent/TCPSink/Sack1 }
        fack    { set cls Agent/TCP/Fack;  set sinkBase Agent/TCPSink/Sack1 }
        vegas   { set cls Agent/TCP/Vegas }
        linux-* {
            set cls Agent/TCP/Linux
            set sinkBase Agent/TCPSink/Sack1
            set ca [string range $variant 6 end]
        }
        default { puts stderr "unknown variant $variant"; exit 2 }
    }
    set tcp [new $cls]
    # the Vegas sender does not add the header size to its packets
    if {$variant eq "vegas"} { $tcp set packetSize_ [expr {$P(seg) + $P(hdr)}] }
    set sink [new [expr {$delack ? "$sinkBase/DelAck" : $sinkBase}]]
    if {$ca ne ""} {
        $tcp set timestamps_ true
        $sink set ts_echo_rfc1323_ true
        $sink set generateDSacks_ false
        $ns at 0.0 "$tcp select_ca $ca"
    }
    return [list $tcp $sink]
}

# Counts packets that an error model removes, without needing the RTP header.
proc lossCounter {em} {
    set mon [new QueueMonitor]
    set snoop [new SnoopQueue/Drop]
    $snoop set-monitor $mon
    $snoop target [new Agent/Null]
    $em drop-target $snoop
    return $mon
}

proc makeErrorModel {} {
    global P rngErr
    set em [new ErrorModel]
    set uni [new RandomVariable/Uniform]
    $uni use-rng $rngErr
    $em ranvar $uni
    if {$P(ber) > 0} {
        # independent bit errors: the packet survives when all its bits do
        $em unit byte
        $em set rate_ [expr {1.0 - pow(1.0 - $P(ber), 8)}]
    } else {
        $em unit pkt
        $em set rate_ $P(loss)
    }
    return $em
}

set A [$ns node]; set B [$ns node]
set lossMons {}
set senders {}
set sinks {}

if {$P(topo) eq "dumbbell"} {
    set oneWay [expr {$P(rtt) / 2.0 - 2 * $P(accdelay)}]
    $ns simplex-link $A $B $P(bw) $oneWay DropTail
    $ns simplex-link $B $A $P(bw) $oneWay DropTail
    $ns queue-limit $A $B $P(buf)
    $ns queue-limit $B $A $P(buf)
    if {$P(loss) > 0 || $P(ber) > 0} {
        set em [makeErrorModel]
        $ns link-lossmodel $em $A $B
        lappend lossMons [lossCounter $em]   ;# after link-lossmodel, which sets its own drop target
    }
    for {set i 0} {$i < $P(flows)} {incr i} {
        set s [$ns node]; set d [$ns node]
        $ns duplex-link $s $A $P(accbw) $P(accdelay) DropTail
        $ns duplex-link $B $d $P(accbw) $P(accdelay) DropTail
        foreach {x y} [list $s $A $A $s $B $d $d $B] { $ns queue-limit $x $y $P(rbuf) }
        lassign [makePair $P(variant) $P(delack)] tcp sink
        $ns attach-agent $s $tcp; $ns attach-agent $d $sink; $ns connect $tcp $sink
        lappend senders $tcp; lappend sinks $sink
    }
} else {
    # X flows reach A over their own satellite hop (delay and loss), Y flows over a terrestrial hop.
    set P(flows) [expr {$P(flowsx) + $P(flowsy)}]
    $ns duplex-link $A $B $P(bw) 0.001 DropTail
    $ns queue-limit $A $B $P(buf)
    $ns queue-limit $B $A $P(buf)
    lassign [split $P(variant) +] vx vy
    for {set i 0} {$i < $P(flows)} {incr i} {
        set isX [expr {$i < $P(flowsx)}]
        set hop [expr {($isX ? $P(rttx) : $P(rtty)) / 2.0 - 0.002}]
        set s [$ns node]; set d [$ns node]
        $ns duplex-link $s $A $P(accbw) $hop DropTail
        $ns duplex-link $B $d $P(accbw) 0.001 DropTail
        foreach {x y} [list $s $A $A $s $B $d $d $B] { $ns queue-limit $x $y $P(rbuf) }
        if {$isX && $P(loss) > 0} {
            set em [makeErrorModel]
            $ns link-lossmodel $em $s $A
            lappend lossMons [lossCounter $em]
        }
        lassign [makePair [expr {$isX ? $vx : $vy}] $P(delack)] tcp sink
        $ns attach-agent $s $tcp; $ns attach-agent $d $sink; $ns connect $tcp $sink
        lappend senders $tcp; lappend sinks $sink
    }
}

set maxq 0
if {!$P(bare)} {
    set qmon [$ns monitor-queue $A $B ""]
    proc sampleQueue {} {
        global ns qmon maxq P
        set q [$qmon set pkts_]
        if {$q > $maxq} { set maxq $q }
        $ns at [expr {[$ns now] + $P(qsample)}] sampleQueue
    }
    if {$P(qsample) > 0} { $ns at 0.0 sampleQueue }
}

# Transfers of a fixed size end when the sender has the last ACK.
set fct {}
set open 0
Agent/TCP instproc done {} {
    global ns startOf fct open P
    lappend fct [expr {[$ns now] - $startOf($self)}]
    if {[incr open -1] == 0} { $ns at [$ns now] finish }
}
set startUni [new RandomVariable/Uniform]
$startUni use-rng $rngStart
foreach tcp $senders {
    set t [expr {$P(spread) > 0 ? [$startUni value] * $P(spread) : 0.0}]
    set startOf($tcp) $t
    if {$P(bytes) > 0} {
        incr open
        $ns at $t "$tcp send $P(bytes)"
    } else {
        set ftp [new Application/FTP]
        $ftp attach-agent $tcp
        $ns at $t "$ftp start"
    }
}

proc finish {} {
    global P senders sinks lossMons qmon maxq fct wire t0 ns
    set wall [expr {([clock microseconds] - $t0) / 1e6}]
    set now [$ns now]
    set sum 0.0; set sq 0.0; set lo 1e30; set hi 0.0; set rx 0.0; set ry 0.0
    set sent 0; set retx 0; set rtos 0; set delivered 0
    set i 0
    foreach tcp $senders sink $sinks {
        # ack_ is the highest segment acknowledged; segment 0 is the SYN, without payload
        set segs [$tcp set ack_]
        set rate [expr {$segs * double($P(seg)) / $now}]
        if {$rate < 0} { set rate 0.0 }
        set sum [expr {$sum + $rate}]; set sq [expr {$sq + $rate * $rate}]
        if {$rate < $lo} { set lo $rate }
        if {$rate > $hi} { set hi $rate }
        if {$P(topo) eq "fair"} {
            if {$i < $P(flowsx)} { set rx [expr {$rx + $rate / $P(flowsx)}]
            } else { set ry [expr {$ry + $rate / $P(flowsy)}] }
        }
        incr sent [$tcp set ndatapack_]
        incr retx [$tcp set nrexmitpack_]
        incr rtos [$tcp set nrexmit_]
        incr i
    }
    set err 0
    foreach m $lossMons { incr err [$m set pdrops_] }
    set qd [expr {$P(bare) ? -1 : [$qmon set pdrops_]}]
    set qdz [expr {$qd < 0 ? 0 : $qd}]
    # link traversals: data over 3 links less what was lost on the way, ACKs over 3 links
    set arrived [expr {$sent - $qdz - $err}]
    set acks [expr {$P(delack) ? $arrived / 2 : $arrived}]
    set hops [expr {$sent + ($sent - $qdz) + $arrived + 3 * $acks}]
    set n [llength $senders]
    set jain [expr {$sq > 0 ? $sum * $sum / ($n * $sq) : 0}]
    set f ""
    if {[llength $fct] == $n} { set f [format %.6f [lindex [lsort -real $fct] end]] }
    set rxs ""; set rys ""
    if {$P(topo) eq "fair"} { set rxs [format %.2f $rx]; set rys [format %.2f $ry] }
    set rtt [expr {$P(topo) eq "fair" ? $P(rttx) : $P(rtt)}]
    puts [join [list ns2 $P(scenario) $P(variant) $P(seed) $P(flows) $P(loss) $P(ber) $P(seg) $wire \
        [format %.4f $rtt] $P(bw) $P(buf) $P(wnd) $P(iw) $P(delack) [format %.4f $now] \
        [format %.2f $sum] [format %.2f $lo] [format %.2f $hi] [format %.5f $jain] $rxs $rys \
        $sent $retx $rtos $qd $err $maxq $f $f $hops "" [format %.3f $wall]] ,]
    flush stdout
    exit 0
}

$ns at $P(dur) finish
set t0 [clock microseconds]
$ns run

// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* star.cc: a star of hosts around one switch in Debian's ns-3, for run.sh to compare speeds with.
 * Reads a flow list as `onramp sim replay` does; prints how many packets crossed a link.
 * Does not: reproduce our NIC. What differs is in run.sh.
 */
#include <cstdint>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

using namespace ns3;

namespace {

constexpr uint16_t SINK_PORT = 100;
constexpr uint32_t PAYLOAD_BYTES = 1000;
/* Marks and memory: those of the dctcp preset and of the replay, in crates/sim. */
constexpr uint32_t MARK_BYTES = 300'000;
constexpr const char *BUFFER = "33554432B";

uint64_t packet_hops = 0;
uint64_t finished_bytes = 0;

void count_hop(Ptr<const Packet>)
{
	packet_hops++;
}

void count_bytes(Ptr<const Packet> packet, const Address &)
{
	finished_bytes += packet->GetSize();
}

void set_defaults(uint64_t window_bytes)
{
	Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpDctcp::GetTypeId()));
	Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(PAYLOAD_BYTES));
	Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
	Config::SetDefault("ns3::TcpSocket::InitialCwnd",
			   UintegerValue(window_bytes / PAYLOAD_BYTES));
	/* As little work a packet as TCP can do: our NIC has none of these either. */
	Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(false));
	Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
	Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(1 << 18));
	Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(1 << 18));
	Config::SetDefault("ns3::RedQueueDisc::UseEcn", BooleanValue(true));
	Config::SetDefault("ns3::RedQueueDisc::UseHardDrop", BooleanValue(false));
	Config::SetDefault("ns3::RedQueueDisc::QW", DoubleValue(1));
	Config::SetDefault("ns3::RedQueueDisc::MaxSize", QueueSizeValue(QueueSize(BUFFER)));
	Config::SetDefault("ns3::RedQueueDisc::MinTh", DoubleValue(MARK_BYTES));
	Config::SetDefault("ns3::RedQueueDisc::MaxTh", DoubleValue(MARK_BYTES));
}

/* Host i is 10.0.i.1 on a network of its own; the switch routes between the networks. */
std::vector<Ipv4Address> build(NodeContainer &hosts, Ptr<Node> the_switch,
			       const std::string &rate, const std::string &delay)
{
	InternetStackHelper stack;
	stack.Install(hosts);
	stack.Install(the_switch);
	PointToPointHelper link;
	link.SetDeviceAttribute("DataRate", StringValue(rate));
	link.SetChannelAttribute("Delay", StringValue(delay));
	link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1p"));
	TrafficControlHelper queue;
	queue.SetRootQueueDisc("ns3::RedQueueDisc", "LinkBandwidth", StringValue(rate),
			       "LinkDelay", StringValue(delay));
	std::vector<Ipv4Address> addresses;
	for (uint32_t i = 0; i < hosts.GetN(); i++) {
		NetDeviceContainer ends = link.Install(hosts.Get(i), the_switch);
		queue.Install(ends);
		for (uint32_t end = 0; end < 2; end++)
			ends.Get(end)->TraceConnectWithoutContext("PhyTxEnd",
								  MakeCallback(&count_hop));
		std::string network = "10.0." + std::to_string(i) + ".0";
		Ipv4AddressHelper assign(network.c_str(), "255.255.255.0");
		Ipv4InterfaceContainer interfaces = assign.Assign(ends);
		addresses.push_back(interfaces.GetAddress(0));
		Ipv4StaticRoutingHelper()
			.GetStaticRouting(hosts.Get(i)->GetObject<Ipv4>())
			->SetDefaultRoute(interfaces.GetAddress(1), 1);
	}
	return addresses;
}

void install_sinks(NodeContainer &hosts)
{
	PacketSinkHelper sink("ns3::TcpSocketFactory",
			      InetSocketAddress(Ipv4Address::GetAny(), SINK_PORT));
	ApplicationContainer sinks = sink.Install(hosts);
	for (uint32_t i = 0; i < sinks.GetN(); i++)
		sinks.Get(i)->TraceConnectWithoutContext("Rx", MakeCallback(&count_bytes));
}

/* Lines of `src dst priority port size_bytes start_s`, after a count. Bytes of all flows. */
uint64_t install_flows(std::istream &list, NodeContainer &hosts,
		       const std::vector<Ipv4Address> &addresses)
{
	uint64_t total_bytes = 0, size_bytes;
	uint32_t count, src, dst, priority, port;
	double start_s;
	list >> count;
	for (uint32_t i = 0; i < count; i++) {
		list >> src >> dst >> priority >> port >> size_bytes >> start_s;
		NS_ABORT_MSG_IF(!list || src >= hosts.GetN() || dst >= hosts.GetN(),
				"flow " << i << " of " << count << " is missing or has no host");
		BulkSendHelper send("ns3::TcpSocketFactory",
				    InetSocketAddress(addresses[dst], SINK_PORT));
		send.SetAttribute("MaxBytes", UintegerValue(size_bytes));
		send.SetAttribute("SendSize", UintegerValue(PAYLOAD_BYTES));
		send.Install(hosts.Get(src)).Start(Seconds(start_s));
		total_bytes += size_bytes;
	}
	return total_bytes;
}

} // namespace

int main(int argc, char *argv[])
{
	uint32_t host_count = 16;
	std::string rate = "100Gbps", delay = "1us", flows;
	uint64_t window_bytes = 52'000;
	CommandLine cmd;
	cmd.AddValue("hosts", "number of hosts", host_count);
	cmd.AddValue("rate", "of every link", rate);
	cmd.AddValue("delay", "of every link, one way", delay);
	cmd.AddValue("window", "initial window, bytes", window_bytes);
	cmd.AddValue("flows", "flow list", flows);
	cmd.Parse(argc, argv);
	std::ifstream list(flows);
	NS_ABORT_MSG_IF(!list, "cannot read --flows=" << flows);

	set_defaults(window_bytes);
	NodeContainer hosts(host_count);
	Ptr<Node> the_switch = CreateObject<Node>();
	std::vector<Ipv4Address> addresses = build(hosts, the_switch, rate, delay);
	install_sinks(hosts);
	uint64_t total_bytes = install_flows(list, hosts, addresses);
	Simulator::Stop(Seconds(10));
	Simulator::Run();
	NS_ABORT_MSG_IF(finished_bytes != total_bytes,
			finished_bytes << " of " << total_bytes << " bytes arrived");
	std::cout << packet_hops << " packet-hops\n";
	Simulator::Destroy();
	return 0;
}

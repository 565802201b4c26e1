-- SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
-- Wireshark dissector of On-Ramp: OR-ACKs (UDP 5199, bpf/abi.h) and messages of clock synchronisation (UDP 5198,
-- crates/clock/src/wire.rs). Use: tshark -X lua_script:onramp.lua, or copy it into Wireshark's plugin directory.
-- It does not check tags, because that needs the key.

local ORACK_PORT, CLOCK_PORT = 5199, 5198
local ORACK_BYTES, HEADER_BYTES, TAG_BYTES = 36, 20, 8
local ADDRESS_BYTES, DELAYS_BYTES, EDGE_BYTES, WALL_BYTES = 18, 32, 114, 25
local KINDS = { [1] = "probe", [2] = "ack", [3] = "report", [4] = "verdict", [5] = "notice" }
local STATES = { [0] = "synchronised", [1] = "apart", [2] = "contradictory" }

-- OR-ACKs

local orack = Proto("onramp_orack", "On-Ramp OR-ACK")
local of_orack = {
	version = ProtoField.uint8("onramp_orack.version", "Version"),
	flags = ProtoField.uint8("onramp_orack.flags", "Flags", base.HEX),
	key = ProtoField.uint16("onramp_orack.key", "Key"),
	seq = ProtoField.uint32("onramp_orack.seq", "Sampled byte (TCP sequence number)"),
	scratch = ProtoField.uint16("onramp_orack.checksum_scratch", "Scratch of the UDP checksum", base.HEX),
	reserved = ProtoField.uint16("onramp_orack.reserved", "Reserved", base.HEX),
	sport = ProtoField.uint16("onramp_orack.srcport", "Source port of the data"),
	dport = ProtoField.uint16("onramp_orack.dstport", "Destination port of the data"),
	managed = ProtoField.uint16("onramp_orack.managed", "Managed part of arrivals (31sts, 0: unknown)", base.DEC, nil, 0xf800),
	use = ProtoField.uint16("onramp_orack.use", "Use of the receiver's line (eighths)", base.DEC, nil, 0x0700),
	flows = ProtoField.uint16("onramp_orack.flows", "Managed flows", base.DEC, nil, 0x00ff),
	len = ProtoField.uint16("onramp_orack.len", "Payload of the segment (bytes, at most 65,535)"),
	arrived = ProtoField.int64("onramp_orack.rx_fleet_ns", "Arrival of the segment (fleet time, ns)"),
	tag = ProtoField.uint64("onramp_orack.tag", "Tag", base.HEX),
}
orack.fields = of_orack
local orack_short = ProtoExpert.new("onramp_orack.malformed", "Not an OR-ACK of version 1", expert.group.MALFORMED,
	expert.severity.WARN)
orack.experts = { orack_short }

function orack.dissector(buffer, info, tree)
	info.cols.protocol = "OR-ACK"
	local node = tree:add(orack, buffer())
	if buffer:len() ~= ORACK_BYTES or buffer(0, 1):uint() ~= 1 then
		node:add_proto_expert_info(orack_short)
		info.cols.info = "not an OR-ACK of version 1"
		return
	end
	local fields = {
		{ "version", 0, 1 }, { "flags", 1, 1 }, { "key", 2, 2 }, { "seq", 4, 4 }, { "scratch", 8, 2 },
		{ "reserved", 10, 2 }, { "sport", 12, 2 }, { "dport", 14, 2 }, { "managed", 16, 2 },
		{ "use", 16, 2 }, { "flows", 16, 2 }, { "len", 18, 2 }, { "arrived", 20, 8 },
		{ "tag", 28, 8 },
	}
	for _, field in ipairs(fields) do
		node:add(of_orack[field[1]], buffer(field[2], field[3]))
	end
	info.cols.info = string.format("of data %d > %d, seq %d, len %d", buffer(12, 2):uint(), buffer(14, 2):uint(),
		buffer(4, 4):uint(), buffer(18, 2):uint())
end

-- Messages of clock synchronisation

local clock = Proto("onramp_clock", "On-Ramp clock synchronisation")
local of_clock = {
	version = ProtoField.uint8("onramp_clock.version", "Version"),
	kind = ProtoField.uint8("onramp_clock.kind", "Kind", base.DEC, KINDS),
	key = ProtoField.uint8("onramp_clock.key", "Key"),
	index = ProtoField.uint8("onramp_clock.index", "Place in its pair"),
	seq = ProtoField.uint64("onramp_clock.seq", "Sequence"),
	term = ProtoField.uint64("onramp_clock.term", "Term of the leader"),
	answers = ProtoField.uint64("onramp_clock.answers", "Number of the message that it answers"),
	received = ProtoField.int64("onramp_clock.received_mono_ns", "Arrival of the probe (monotonic, ns)"),
	sent = ProtoField.int64("onramp_clock.sent_mono_ns", "Departure of an ack before (monotonic, ns)"),
	received_fleet = ProtoField.int64("onramp_clock.received_fleet_ns", "An arrival by the sender's fleet time (ns)"),
	sent_fleet = ProtoField.int64("onramp_clock.sent_fleet_ns", "A departure by the sender's fleet time (ns)"),
	before = ProtoField.uint32("onramp_clock.before", "An earlier pair"),
	epoch = ProtoField.uint32("onramp_clock.epoch", "Epoch of the sender's clock"),
	id = ProtoField.uint32("onramp_clock.id", "Number of the pair"),
	state = ProtoField.uint8("onramp_clock.state", "State", base.DEC, STATES),
	reference = ProtoField.int64("onramp_clock.reference_mono_ns", "Reference point (monotonic, ns)"),
	offset = ProtoField.int64("onramp_clock.offset_ns", "Fleet time minus monotonic (ns)"),
	drift = ProtoField.double("onramp_clock.drift", "Drift"),
	bend = ProtoField.double("onramp_clock.bend", "Bend"),
	sigma = ProtoField.double("onramp_clock.sigma_ns", "Sigma (ns)"),
	drift_sigma = ProtoField.double("onramp_clock.drift_sigma", "Sigma of the drift"),
	wander = ProtoField.double("onramp_clock.wander_per_s", "Wander of the drift (1/s)"),
	count = ProtoField.uint16("onramp_clock.count", "Entries"),
	far = ProtoField.ipv6("onramp_clock.far", "Other host"),
	far_port = ProtoField.uint16("onramp_clock.far_port", "Its port"),
	out_min = ProtoField.int64("onramp_clock.out_min_ns", "Minimum delay to it (ns)"),
	back_min = ProtoField.int64("onramp_clock.back_min_ns", "Minimum delay from it (ns)"),
	out_now = ProtoField.int64("onramp_clock.out_now_ns", "Delay to it now (ns)"),
	back_now = ProtoField.int64("onramp_clock.back_now_ns", "Delay from it now (ns)"),
	tag = ProtoField.uint64("onramp_clock.tag", "Tag", base.HEX),
}
clock.fields = of_clock
local clock_short = ProtoExpert.new("onramp_clock.malformed", "Not a message of version 4", expert.group.MALFORMED,
	expert.severity.WARN)
clock.experts = { clock_short }

-- Adds fields that follow one another from `at` on. Returns the offset behind them; nil if they do not fit before the tag.
local function add(node, buffer, at, fields)
	for _, field in ipairs(fields) do
		if not at or at + field[2] > buffer:len() - TAG_BYTES then return nil end
		node:add(of_clock[field[1]], buffer(at, field[2]))
		at = at + field[2]
	end
	return at
end

local function add_probe(node, buffer, at)
	return add(node, buffer, at, { { "received", 8 }, { "sent", 8 }, { "received_fleet", 8 }, { "sent_fleet", 8 },
		{ "before", 4 }, { "id", 4 }, { "epoch", 4 } })
end

local function add_state(node, buffer, at)
	return add(node, buffer, at, { { "state", 1 }, { "reference", 8 }, { "offset", 8 }, { "drift", 8 }, { "bend", 8 },
		{ "sigma", 8 }, { "drift_sigma", 8 }, { "wander", 8 } })
end

-- Adds entries of `bytes` each, which begin with an address and end with delays.
local function add_entries(node, buffer, at, bytes)
	at = add(node, buffer, at, { { "count", 2 } })
	if not at then return nil end
	local count = buffer(at - 2, 2):uint()
	for _ = 1, count do
		if at + bytes > buffer:len() - TAG_BYTES then return nil end
		local entry = node:add(clock, buffer(at, bytes), "Entry")
		add(entry, buffer, at, { { "far", 16 }, { "far_port", 2 } })
		at = add(entry, buffer, at + bytes - DELAYS_BYTES, { { "out_min", 8 }, { "back_min", 8 }, { "out_now", 8 },
			{ "back_now", 8 } })
	end
	return at
end

-- What follows the header, by kind.
local bodies = {
	[1] = add_probe,
	[2] = add_probe,
	[3] = function(node, buffer, at)
		at = add(node, buffer, at, { { "epoch", 4 } })
		return add_entries(node, buffer, at and add_state(node, buffer, at), EDGE_BYTES)
	end,
	[4] = function(node, buffer, at)
		at = add_state(node, buffer, add(node, buffer, at, { { "answers", 8 } }))
		return add_entries(node, buffer, at and at + WALL_BYTES, ADDRESS_BYTES + DELAYS_BYTES)
	end,
	[5] = function(node, buffer, at) return add(node, buffer, at, { { "answers", 8 } }) end,
}

function clock.dissector(buffer, info, tree)
	info.cols.protocol = "On-Ramp clock"
	local node = tree:add(clock, buffer())
	local body = buffer:len() >= HEADER_BYTES + TAG_BYTES and buffer(0, 1):uint() == 5 and bodies[buffer(1, 1):uint()]
	if not body then
		node:add_proto_expert_info(clock_short)
		info.cols.info = "not a message of version 5"
		return
	end
	info.cols.info = string.format("%s, term %s", KINDS[buffer(1, 1):uint()], tostring(buffer(12, 8):uint64()))
	local at = add(node, buffer, 0, { { "version", 1 }, { "kind", 1 }, { "key", 1 }, { "index", 1 }, { "seq", 8 },
		{ "term", 8 } })
	if body(node, buffer, at) ~= buffer:len() - TAG_BYTES then
		node:add_proto_expert_info(clock_short)
	end
	node:add(of_clock.tag, buffer(buffer:len() - TAG_BYTES, TAG_BYTES))
end

local ports = DissectorTable.get("udp.port")
ports:add(ORACK_PORT, orack)
ports:add(CLOCK_PORT, clock)

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* switch.c: the switch between guests. A port a guest, each with a queue of bounded length that leaves at a known rate, so
 * that an incast meets what it meets in a switch.
 *
 *   switch FOLDER PORTS MBIT_PER_S QUEUE_BYTES
 *
 * Port N receives from the UNIX datagram socket FOLDER/switch.N, and sends to FOLDER/guest.N, which is QEMU's. The guest
 * at port N has the Ethernet address 02:00:00:00:00:0N. What does not fit is dropped, as what goes to a machine that is
 * down. */
#define _GNU_SOURCE
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define MOST_PORTS 9
#define MOST_BYTES 2048
#define MOST_FRAMES 1024
#define ON_WIRE 24 /* preamble, checksum and gap of a frame */

struct frame {
	int bytes;
	unsigned char data[MOST_BYTES];
};

/* Frames from `first` on wait; the first of them has left the port entirely at `leaves_ns`. */
struct port {
	int socket;
	struct sockaddr_un guest;
	struct frame frames[MOST_FRAMES];
	int first, waiting, bytes;
	int64_t leaves_ns;
};

static struct port ports[MOST_PORTS];
static int port_count, queue_bytes;
static double ns_per_byte;

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static struct sockaddr_un address(const char *folder, const char *name, int port)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };

	snprintf(at.sun_path, sizeof(at.sun_path), "%s/%s.%d", folder, name, port + 1);
	return at;
}

static void open_port(const char *folder, int number)
{
	struct sockaddr_un own = address(folder, "switch", number);
	struct port *port = &ports[number];
	int most = 4 << 20;

	port->guest = address(folder, "guest", number);
	port->socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	setsockopt(port->socket, SOL_SOCKET, SO_SNDBUF, &most, sizeof(most));
	unlink(own.sun_path);
	if (port->socket < 0 || bind(port->socket, (void *)&own, sizeof(own))) {
		perror(own.sun_path);
		exit(1);
	}
}

static int64_t time_to_leave(const struct port *port)
{
	return (port->frames[port->first].bytes + ON_WIRE) * ns_per_byte;
}

static void enqueue(struct port *port, const unsigned char *data, int bytes, int64_t now)
{
	struct frame *frame = &port->frames[(port->first + port->waiting) % MOST_FRAMES];

	if (port->waiting == MOST_FRAMES || port->bytes + bytes > queue_bytes)
		return;
	memcpy(frame->data, data, bytes);
	frame->bytes = bytes;
	port->bytes += bytes;
	if (!port->waiting++)
		port->leaves_ns = now + time_to_leave(port);
}

/* Sends what has left by now. A switch that gets its processor late goes on as if it had been in time. */
static void send_due(struct port *port, int64_t now)
{
	while (port->waiting && port->leaves_ns <= now) {
		struct frame *frame = &port->frames[port->first];

		/* A machine that is down or does not read loses it. */
		sendto(port->socket, frame->data, frame->bytes, 0, (void *)&port->guest, sizeof(port->guest));
		port->bytes -= frame->bytes;
		port->first = (port->first + 1) % MOST_FRAMES;
		if (--port->waiting)
			port->leaves_ns += time_to_leave(port);
	}
}

/* To the port of its address; to all others if that is none. */
static void forward(int from, const unsigned char *data, int bytes, int64_t now)
{
	int to = (data[0] & 1) ? 0 : data[5], i;

	if (bytes < 14)
		return;
	for (i = 0; i < port_count; i++)
		if (i != from && (to < 1 || to > port_count || to == i + 1))
			enqueue(&ports[i], data, bytes, now);
}

static void receive(int from)
{
	unsigned char data[MOST_BYTES];
	int i, bytes;

	for (i = 0; i < 64; i++) {
		bytes = recv(ports[from].socket, data, sizeof(data), 0);
		if (bytes < 0)
			return;
		forward(from, data, bytes, now_ns());
	}
}

static void run(void)
{
	struct pollfd polled[MOST_PORTS];
	struct timespec wait;
	int64_t next_ns, now;
	int i;

	for (i = 0; i < port_count; i++)
		polled[i] = (struct pollfd){ ports[i].socket, POLLIN, 0 };
	for (;;) {
		now = now_ns();
		next_ns = now + 1000000000;
		for (i = 0; i < port_count; i++) {
			send_due(&ports[i], now);
			if (ports[i].waiting && ports[i].leaves_ns < next_ns)
				next_ns = ports[i].leaves_ns;
		}
		wait = (struct timespec){ (next_ns - now) / 1000000000, (next_ns - now) % 1000000000 };
		ppoll(polled, port_count, &wait, NULL);
		for (i = 0; i < port_count; i++)
			receive(i);
	}
}

int main(int argc, char **argv)
{
	int i;

	if (argc != 5 || atoi(argv[2]) < 1 || atoi(argv[2]) > MOST_PORTS || atof(argv[3]) <= 0) {
		fprintf(stderr, "usage: switch FOLDER PORTS MBIT_PER_S QUEUE_BYTES, with at most %d ports\n", MOST_PORTS);
		return 1;
	}
	port_count = atoi(argv[2]);
	ns_per_byte = 8000 / atof(argv[3]);
	queue_bytes = atoi(argv[4]);
	prctl(PR_SET_TIMERSLACK, 1);
	for (i = 0; i < port_count; i++)
		open_port(argv[1], i);
	run();
}

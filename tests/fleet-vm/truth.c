/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* truth.c: the fleet times of guests, read against the one clock of their host with a known bound.
 *
 *   truth host FILE...     on the host, prints until it is ended, for each reading of guest 1, 2, ..:
 *                          guest host_ns bound_ns mono_ns [fleet_ns sigma_ns]
 *   truth guest            in a guest, answers until it is ended
 *   truth rate PPM         in a guest, makes CLOCK_MONOTONIC faster by this
 *
 * Host and guest share a page: a file of the host, and the memory of QEMU's device ivshmem in the guest. The host writes a
 * number, the guest answers with its CLOCK_MONOTONIC, and the host sees the answer. So the guest has read its clock
 * between two readings of the host's CLOCK_MONOTONIC: host_ns is their middle, bound_ns half of their distance, and the
 * truth is never further away. Neither processor sleeps meanwhile. Of many exchanges the host prints the shortest.
 *
 * Fleet time is what the guest's data path has at that moment: the line of the map "clock" (bpf/abi.h). It is missing while
 * there is none, or while its lease has ended. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#include "../../law/clock.h"
#include "../../bpf/abi.h"

#define BURST 40		/* most exchanges of a reading */
#define ENOUGH_NS 600		/* a bound that needs no further exchange */
#define PATIENCE_NS 100000ll	/* an exchange that takes longer is no use: one of the two has lost its processor */
#define RETRY_NS 1000000ll	/* then the next one comes so much later */
#define WAKE_NS 300000000ll	/* a guest that has no processor for so long is asked later */
#define PERIOD_NS 200000000ll	/* between two readings of a guest */
#define LOOK_NS 10000000ll	/* a guest looks so often whether it is asked */
#define ATTENTION 200000	/* so many looks in a row after an answer: some ms of the processor, however late */

struct page {
	_Atomic u64 asked, answered;
	s64 mono_ns, fleet_ns, sigma_ns;
	u64 has_fleet;
};

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static s64 now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static void pause_ns(s64 ns)
{
	struct timespec t = { ns / 1000000000, ns % 1000000000 };

	nanosleep(&t, NULL);
}

static struct page *map_page(const char *path)
{
	int fd = open(path, O_RDWR);
	struct page *page;

	if (fd < 0)
		fail(path);
	page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		fail(path);
	close(fd);
	return page;
}

/* --- guest --- */

static int bpf(int command, union bpf_attr *attr)
{
	return syscall(SYS_bpf, command, attr, sizeof(*attr));
}

/* The line with the larger epoch of the map's two. False without a data path. */
static int read_line(struct onr_clock_params *line)
{
	struct onr_clock both[2];
	union bpf_attr attr;
	glob_t found;
	int fd, ok = 0;
	u32 i;

	if (glob("/sys/fs/bpf/onramp/*/*/clock", 0, NULL, &found))
		return 0;
	memset(&attr, 0, sizeof(attr));
	attr.pathname = (u64)(uintptr_t)found.gl_pathv[0];
	fd = bpf(BPF_OBJ_GET, &attr);
	globfree(&found);
	if (fd < 0)
		return 0;
	for (i = 0; i < 2; i++) {
		memset(&attr, 0, sizeof(attr));
		attr.map_fd = fd;
		attr.key = (u64)(uintptr_t)&i;
		attr.value = (u64)(uintptr_t)&both[i];
		ok += !bpf(BPF_MAP_LOOKUP_ELEM, &attr);
	}
	close(fd);
	*line = both[both[1].epoch > both[0].epoch].params;
	return ok == 2;
}

static void answer(struct page *page, u64 asked, const struct onr_clock_params *line)
{
	s64 mono_ns = now_ns();

	page->mono_ns = mono_ns;
	page->has_fleet = line->lease_expires_mono_ns > mono_ns;
	page->fleet_ns = mono_ns + onr_clock_offset(mono_ns, line->offset_ns, line->drift_q32, line->reference_mono_ns);
	page->sigma_ns = line->sigma_ns;
	atomic_store(&page->answered, asked);
}

static void serve(struct page *page)
{
	struct onr_clock_params line;
	u64 asked, last = atomic_load(&page->asked);
	int looks;

	for (;; pause_ns(LOOK_NS)) {
		if (atomic_load(&page->asked) == last)
			continue;
		if (!read_line(&line))
			memset(&line, 0, sizeof(line));
		for (looks = 0; looks < ATTENTION; looks++) {
			asked = atomic_load(&page->asked);
			if (asked == last)
				continue;
			answer(page, asked, &line);
			last = asked;
			looks = 0;
		}
	}
}

/* The memory of the device ivshmem: vendor 1af4, device 1110. */
static struct page *guests_page(void)
{
	char path[128], id[16];
	glob_t found;
	FILE *file;
	size_t i;

	if (glob("/sys/bus/pci/devices/*/device", 0, NULL, &found))
		fail("PCI");
	for (i = 0; i < found.gl_pathc; i++) {
		file = fopen(found.gl_pathv[i], "r");
		if (!file || !fgets(id, sizeof(id), file))
			fail(found.gl_pathv[i]);
		fclose(file);
		if (strcmp(id, "0x1110\n"))
			continue;
		snprintf(path, sizeof(path), "%.*s/enable", (int)strlen(found.gl_pathv[i]) - 7, found.gl_pathv[i]);
		file = fopen(path, "w");
		if (!file || fputs("1", file) < 0 || fclose(file))
			fail(path);
		strcpy(path + strlen(path) - strlen("enable"), "resource2");
		return map_page(path);
	}
	fprintf(stderr, "truth: this machine has no device ivshmem\n");
	exit(1);
}

static void set_rate(double ppm)
{
	struct timex t = { .modes = ADJ_FREQUENCY, .freq = ppm * 65536 };

	if (adjtimex(&t) < 0)
		fail("adjtimex");
}

/* --- host --- */

struct reading {
	s64 host_ns, bound_ns, mono_ns, fleet_ns, sigma_ns;
	u64 has_fleet;
};

/* One exchange. False if no answer comes in time. */
static int ask(struct page *page, struct reading *reading)
{
	u64 asked = atomic_load(&page->asked) + 1;
	s64 before_ns = now_ns(), after_ns;

	atomic_store(&page->asked, asked);
	while (atomic_load(&page->answered) != asked)
		if (now_ns() - before_ns > PATIENCE_NS)
			return 0;
	after_ns = now_ns();
	*reading = (struct reading){ (before_ns + after_ns) / 2, (after_ns - before_ns + 1) / 2,
		page->mono_ns, page->fleet_ns, page->sigma_ns, page->has_fleet };
	return 1;
}

/* Wakes the guest, and waits without taking its processor. */
static int wake(struct page *page)
{
	u64 asked = atomic_load(&page->asked) + 1;
	s64 until_ns = now_ns() + WAKE_NS;

	atomic_store(&page->asked, asked);
	while (atomic_load(&page->answered) != asked) {
		if (now_ns() > until_ns)
			return 0;
		pause_ns(200000);
	}
	return 1;
}

static void read_guest(int guest, struct page *page)
{
	struct reading best = { .bound_ns = LLONG_MAX }, next;
	int i;

	if (!wake(page))
		return;
	for (i = 0; i < BURST && best.bound_ns > ENOUGH_NS; i++)
		if (!ask(page, &next))
			pause_ns(RETRY_NS);
		else if (next.bound_ns < best.bound_ns)
			best = next;
	if (best.bound_ns == LLONG_MAX)
		return;
	printf("%d %lld %lld %lld", guest, best.host_ns, best.bound_ns, best.mono_ns);
	if (best.has_fleet)
		printf(" %lld %lld", best.fleet_ns, best.sigma_ns);
	printf("\n");
	fflush(stdout); /* a line is written at once, and so is never mixed with another's */
}

/* A process for each guest, so that none waits for another that is starved. They end with their parent. */
static void read_guests(int guests, char **paths)
{
	struct page *page;
	int i = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setpriority(PRIO_PROCESS, 0, -10); /* the fewer exchanges wait for a processor here, the closer the bound */
	while (i < guests - 1 && fork())
		i++;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	page = map_page(paths[i]);
	for (;; pause_ns(PERIOD_NS))
		read_guest(i + 1, page);
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "guest")) {
		serve(guests_page());
	} else if (argc == 3 && !strcmp(argv[1], "rate")) {
		set_rate(atof(argv[2]));
	} else if (argc > 2 && !strcmp(argv[1], "host")) {
		read_guests(argc - 2, argv + 2);
	} else {
		fprintf(stderr, "usage: truth guest | truth rate PPM | truth host FILE...\n");
		return 1;
	}
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* A host's CLOCK_REALTIME that is wrong in a known way, for chronyd and ptp4l on one kernel: preloaded,
 * it stands between them and the kernel's clock. What they read, and the kernel's time stamps of their
 * packets, are an oscillator's; what they set is applied to it. Once in 20 ms it notes how far the
 * clock is ahead of the kernel's: lines "CLOCK_MONOTONIC ahead", ns.
 *
 * WRONG_CLOCK: "OFFSET_NS DRIFT WANDER PERIOD_NS", as onramp-sync's Oscillator.
 * WRONG_CLOCK_LOG: the file that takes the notes. */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

typedef long long ns_t;

#define SECOND 1000000000LL
#define NOTE 20000000LL
#define STAMPS 3 /* software, legacy, hardware: struct scm_timestamping */

static struct {
	int known;
	double offset, drift, wander, period; /* the oscillator */
	double frequency; /* what adjtimex added, 1 = 10^6 ppm */
	ns_t mono;        /* since then; the clock was ahead of the kernel's by this: */
	double ahead;
	ns_t noted;
	FILE *log;
	struct timex timex;
} clock_;

static ns_t kernel(clockid_t id)
{
	struct timespec now;

	syscall(SYS_clock_gettime, id, &now);
	return now.tv_sec * SECOND + now.tv_nsec;
}

/* The kernel's CLOCK_REALTIME less its CLOCK_MONOTONIC: nobody sets it here. */
static ns_t between(void)
{
	static ns_t found;

	if (!found)
		found = kernel(CLOCK_REALTIME) - kernel(CLOCK_MONOTONIC);
	return found;
}

/* How far the oscillator has run ahead at CLOCK_MONOTONIC mono. */
static double oscillator(ns_t mono)
{
	double turn = clock_.period > 0 ? 2 * M_PI / clock_.period : 0;
	double swung = turn > 0 ? clock_.wander / turn * (1 - cos(turn * mono)) : 0;

	return clock_.offset + clock_.drift * mono + swung;
}

static void begin(void)
{
	const char *wrong = getenv("WRONG_CLOCK"), *log = getenv("WRONG_CLOCK_LOG");

	if (clock_.known)
		return;
	clock_.known = 1;
	clock_.mono = kernel(CLOCK_MONOTONIC);
	clock_.timex.tick = 10000;
	clock_.timex.status = STA_UNSYNC;
	if (wrong)
		sscanf(wrong, "%lf %lf %lf %lf", &clock_.offset, &clock_.drift, &clock_.wander,
		       &clock_.period);
	clock_.ahead = oscillator(clock_.mono);
	if (log)
		clock_.log = fopen(log, "we");
}

/* How far the clock is ahead of the kernel's at CLOCK_MONOTONIC mono. */
static double ahead(ns_t mono)
{
	double gained = oscillator(mono) - oscillator(clock_.mono);

	return clock_.ahead + gained + clock_.frequency * (mono - clock_.mono + gained);
}

static ns_t reads(ns_t mono)
{
	return mono + between() + (ns_t)ahead(mono);
}

static void note(ns_t mono)
{
	if (!clock_.log || mono - clock_.noted < NOTE)
		return;
	clock_.noted = mono;
	fprintf(clock_.log, "%lld %.0f\n", mono, ahead(mono));
	fflush(clock_.log);
}

/* From now on the clock is set, or runs, otherwise. */
static void turn(double by)
{
	ns_t mono = kernel(CLOCK_MONOTONIC);

	clock_.ahead = ahead(mono) + by;
	clock_.mono = mono;
}

static struct timespec timespec_of(ns_t ns)
{
	return (struct timespec){.tv_sec = ns / SECOND, .tv_nsec = ns % SECOND};
}

int clock_gettime(clockid_t id, struct timespec *now)
{
	ns_t mono;

	if (id != CLOCK_REALTIME)
		return syscall(SYS_clock_gettime, id, now);
	begin();
	mono = kernel(CLOCK_MONOTONIC);
	note(mono);
	*now = timespec_of(reads(mono));
	return 0;
}

int gettimeofday(struct timeval *now, void *zone)
{
	struct timespec fine;

	(void)zone;
	clock_gettime(CLOCK_REALTIME, &fine);
	*now = (struct timeval){.tv_sec = fine.tv_sec, .tv_usec = fine.tv_nsec / 1000};
	return 0;
}

time_t time(time_t *now)
{
	struct timespec fine;

	clock_gettime(CLOCK_REALTIME, &fine);
	if (now)
		*now = fine.tv_sec;
	return fine.tv_sec;
}

int clock_settime(clockid_t id, const struct timespec *to)
{
	begin();
	if (id != CLOCK_REALTIME)
		return syscall(SYS_clock_settime, id, to);
	turn(to->tv_sec * SECOND + to->tv_nsec - reads(kernel(CLOCK_MONOTONIC)));
	return 0;
}

int settimeofday(const struct timeval *to, const struct timezone *zone)
{
	struct timespec fine = {.tv_sec = to->tv_sec, .tv_nsec = to->tv_usec * 1000};

	(void)zone;
	return clock_settime(CLOCK_REALTIME, &fine);
}

int adjtimex(struct timex *t)
{
	ns_t part = t->modes & ADJ_NANO ? 1 : 1000;

	begin();
	if (t->modes & ADJ_OFFSET && t->offset) { /* the kernel's own loop, which neither needs */
		errno = ENOTSUP;
		return -1;
	}
	turn(t->modes & ADJ_SETOFFSET ? t->time.tv_sec * SECOND + t->time.tv_usec * part : 0);
	if (t->modes & ADJ_FREQUENCY)
		clock_.timex.freq = t->freq;
	if (t->modes & ADJ_TICK)
		clock_.timex.tick = t->tick;
	if (t->modes & ADJ_STATUS)
		clock_.timex.status = t->status;
	if (t->modes & ADJ_MAXERROR)
		clock_.timex.maxerror = t->maxerror;
	if (t->modes & ADJ_ESTERROR)
		clock_.timex.esterror = t->esterror;
	/* freq: ppm with 16 binary places; tick: us in 10 ms. */
	clock_.frequency = clock_.timex.freq / 65536e6 + (clock_.timex.tick - 10000) / 1e4;
	*t = clock_.timex;
	t->precision = 1;
	t->tolerance = 500 << 16;
	clock_gettime(CLOCK_REALTIME, &(struct timespec){0});
	return clock_.timex.status & STA_UNSYNC ? TIME_ERROR : TIME_OK;
}

int ntp_adjtime(struct timex *t)
{
	return adjtimex(t);
}

int clock_adjtime(clockid_t id, struct timex *t)
{
	return id == CLOCK_REALTIME ? adjtimex(t) : syscall(SYS_clock_adjtime, id, t);
}

static void restamp(struct msghdr *message)
{
	struct cmsghdr *c;

	begin();
	note(kernel(CLOCK_MONOTONIC));
	for (c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		int count = c->cmsg_type == SO_TIMESTAMPNS ? 1 : c->cmsg_type == SO_TIMESTAMPING ? STAMPS : 0;
		struct timespec stamps[STAMPS];

		if (c->cmsg_level != SOL_SOCKET || !count)
			continue;
		memcpy(stamps, CMSG_DATA(c), count * sizeof(*stamps));
		if (stamps[0].tv_sec)
			stamps[0] = timespec_of(reads(stamps[0].tv_sec * SECOND + stamps[0].tv_nsec - between()));
		memcpy(CMSG_DATA(c), stamps, count * sizeof(*stamps));
	}
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	ssize_t length = syscall(SYS_recvmsg, fd, message, flags);

	if (length >= 0)
		restamp(message);
	return length;
}

int recvmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags, struct timespec *timeout)
{
	int n, got = syscall(SYS_recvmmsg, fd, messages, count, flags, timeout);

	for (n = 0; n < got; n++)
		restamp(&messages[n].msg_hdr);
	return got;
}

// Moves the wall clock of the program that it is preloaded into. The file that
// OVERSELL_CLOCK_OFFSET_FILE names holds by how many nanoseconds: one integer of
// 8 bytes, mapped into memory, so that a reading costs no system call more and a
// change takes effect at the next one. Monotonic clocks are left alone.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int (*next)(clockid_t, struct timespec *);
static const int64_t *offset;

// Without its file a server would keep the right time, and the fault would only
// seem to have happened. So it does not start.
__attribute__((constructor)) static void load(void) {
	const char *name = getenv("OVERSELL_CLOCK_OFFSET_FILE");
	int fd = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
	void *map = fd < 0 ? MAP_FAILED : mmap(0, sizeof *offset, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		perror("clock shim: OVERSELL_CLOCK_OFFSET_FILE");
		_exit(1);
	}
	close(fd);
	offset = map;
	next = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
}

int clock_gettime(clockid_t id, struct timespec *t) {
	// Other libraries read clocks before load has run.
	int failed = next ? next(id, t) : (int)syscall(SYS_clock_gettime, id, t);
	if (failed || !offset || (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE))
		return failed;
	int64_t ns = t->tv_nsec + __atomic_load_n(offset, __ATOMIC_RELAXED);
	t->tv_sec += ns / 1000000000;
	t->tv_nsec = ns % 1000000000;
	if (t->tv_nsec < 0) {
		t->tv_sec--;
		t->tv_nsec += 1000000000;
	}
	return 0;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone) {
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	*tv = (struct timeval){t.tv_sec, t.tv_nsec / 1000};
	if (zone)
		*(struct timezone *)zone = (struct timezone){0, 0};
	return 0;
}

time_t time(time_t *seconds) {
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	if (seconds)
		*seconds = t.tv_sec;
	return t.tv_sec;
}

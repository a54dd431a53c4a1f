// Puts the program that it is preloaded into under the control of a search. What the
// program reads from its clocks, its sleeps and its connections go through a control
// connection to the search, which answers each in 8 bytes. Until the first use of
// stdin the clocks stand still.
//
// A program that is about to read stdin for the first time, and has one thread and no
// connection, becomes a template: it waits for orders, and forks a process for each,
// which goes on reading a stdin of its own. So starting the program costs a fork.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL

static const char *address; // of the search's socket; 0: the program is not stepped
static long long input;   // the stdin of the program that is stepped, and of none that it starts
static int control = -1;
static int stepped; // the search answers: the process is no template
static int64_t epoch;        // what the clock of the day shows at the start
static int64_t elapsed;      // since then, as last seen by the program
static int steadyIsSeen = 1; // a look at a monotonic clock goes to the search, too
static pthread_mutex_t talking = PTHREAD_MUTEX_INITIALIZER;

#define REAL(result, name, ...)                              \
	static result (*next_##name)(__VA_ARGS__);               \
	if (!next_##name)                                        \
		next_##name = (result(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name);

__attribute__((constructor)) static void load(void) {
	const char *at = getenv("OVERSELL_STEP_EPOCH"), *steady = getenv("OVERSELL_STEP_STEADY");
	epoch = at ? strtoll(at, 0, 10) : 0;
	steadyIsSeen = !steady || *steady != '0';
	address = getenv("OVERSELL_STEP_SOCKET");
	const char *pipe = getenv("OVERSELL_STEP_STDIN");
	input = pipe ? strtoll(pipe, 0, 10) : -1;
}

static ssize_t rawRead(int fd, void *to, size_t n) { return syscall(SYS_read, fd, to, n); }

// lose ends a process whose search is gone.
static void lose(void) { _exit(96); }

static int64_t answer(int fd) {
	int64_t a;
	for (size_t got = 0; got < sizeof a;) {
		ssize_t n = rawRead(fd, (char *)&a + got, sizeof a - got);
		if (n == 0 || (n < 0 && errno != EINTR))
			lose();
		got += n > 0 ? n : 0;
	}
	return a;
}

static void tell(int fd, const char *line, size_t size) {
	while (size > 0) {
		ssize_t n = syscall(SYS_write, fd, line, size);
		if (n < 0 && errno != EINTR)
			lose();
		line += n > 0 ? n : 0;
		size -= n > 0 ? n : 0;
	}
}

// dial connects to the search, on a descriptor that programs do not use by number.
static int dial(const char *hello, long long a, long b) {
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	strncpy(to.sun_path, address, sizeof to.sun_path - 1);
	int low = socket(AF_UNIX, SOCK_STREAM, 0);
	if (low < 0 || syscall(SYS_connect, low, &to, sizeof to) < 0)
		lose();
	int fd = fcntl(low, F_DUPFD_CLOEXEC, 200);
	if (fd < 0)
		lose();
	close(low);
	char line[80];
	tell(fd, line, snprintf(line, sizeof line, "%s %lld %ld %ld\n", hello, a, b, (long)getpid()));
	return fd;
}

static int64_t ask(const char *format, ...) {
	char line[160];
	va_list of;
	va_start(of, format);
	int size = vsnprintf(line, sizeof line, format, of);
	va_end(of);
	pthread_mutex_lock(&talking);
	tell(control, line, size);
	int64_t a = answer(control);
	pthread_mutex_unlock(&talking);
	return a;
}

static int threads(void) {
	int n = 0;
	DIR *d = opendir("/proc/self/task");
	if (!d)
		return 99;
	for (struct dirent *e; (e = readdir(d));)
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

// Python has to know that it is forked: it seeds its random numbers anew.
static struct python {
	int (*ensure)(void);
	void (*release)(int), (*before)(void), (*parent)(void), (*child)(void);
} py;

static int isPython(void) {
	py.ensure = (int (*)(void))dlsym(RTLD_DEFAULT, "PyGILState_Ensure");
	py.release = (void (*)(int))dlsym(RTLD_DEFAULT, "PyGILState_Release");
	py.before = (void (*)(void))dlsym(RTLD_DEFAULT, "PyOS_BeforeFork");
	py.parent = (void (*)(void))dlsym(RTLD_DEFAULT, "PyOS_AfterFork_Parent");
	py.child = (void (*)(void))dlsym(RTLD_DEFAULT, "PyOS_AfterFork_Child");
	return py.ensure && py.release && py.before && py.parent && py.child;
}

// arrive connects a process that was forked by this order.
static void arrive(int64_t number) {
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(control);
	control = dial("child", number, 0);
	int lines = dial("lines", number, 0);
	dup2(lines, 0);
	dup2(lines, 1);
	close(lines);
}

// refused tells the search that the program starts another one, which would run beside it: that fails.
static int refused(void) {
	if (!stepped)
		return 0;
	ask("starts\n");
	errno = EPERM; // a shell tries again after EAGAIN
	return 1;
}

pid_t fork(void) {
	if (refused())
		return -1;
	REAL(pid_t, fork, void)
	return next_fork();
}

// Nobody can return from a function that has called vfork, so it is a fork.
pid_t vfork(void) { return fork(); }

int posix_spawn(pid_t *restrict pid, const char *restrict path, const posix_spawn_file_actions_t *restrict actions, const posix_spawnattr_t *restrict attributes, char *const argv[restrict], char *const envp[restrict]) {
	if (refused())
		return EPERM;
	REAL(int, posix_spawn, pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, char *const *, char *const *)
	return next_posix_spawn(pid, path, actions, attributes, argv, envp);
}

int posix_spawnp(pid_t *restrict pid, const char *restrict file, const posix_spawn_file_actions_t *restrict actions, const posix_spawnattr_t *restrict attributes, char *const argv[restrict], char *const envp[restrict]) {
	if (refused())
		return EPERM;
	REAL(int, posix_spawnp, pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, char *const *, char *const *)
	return next_posix_spawnp(pid, file, actions, attributes, argv, envp);
}

int system(const char *command) {
	if (command && refused())
		return -1;
	REAL(int, system, const char *)
	return next_system(command);
}

FILE *popen(const char *command, const char *mode) {
	if (refused())
		return 0;
	REAL(FILE *, popen, const char *, const char *)
	return next_popen(command, mode);
}

static pid_t forked(int64_t number) {
	int state = 0, python = isPython();
	if (python) {
		state = py.ensure();
		py.before();
	}
	pid_t pid = fork();
	if (pid == 0)
		arrive(number);
	if (python) {
		pid == 0 ? py.child() : py.parent();
		py.release(state);
	}
	return pid;
}

// breed forks a process for each order, which is its number, and returns in those.
// Order 0 has the program go on itself.
static void breed(void) {
	for (;;) {
		int64_t number = answer(control);
		if (number == 0)
			return;
		while (waitpid(-1, 0, WNOHANG) > 0)
			;
		pid_t pid = forked(number);
		if (pid < 0)
			lose();
		if (pid == 0)
			return;
	}
}

// begin tells the search that the program is ready, or early that it has to be
// followed from here on, with what it has opened already.
static void begin(int early) {
	static int begun;
	struct stat of;
	if (!address || fstat(0, &of) || (long long)of.st_ino != input || __atomic_exchange_n(&begun, 1, __ATOMIC_SEQ_CST))
		return;
	int alone = !early && threads() == 1;
	control = dial("ready", input, alone);
	breed();
	stepped = 1;
}

static int64_t look(void) {
	if (stepped)
		__atomic_store_n(&elapsed, ask("clock\n"), __ATOMIC_RELAXED);
	return __atomic_load_n(&elapsed, __ATOMIC_RELAXED);
}

// A monotonic clock has run for a while when the program begins.
static const int64_t uptime = 1000 * SECOND;

static int64_t reading(clockid_t id) {
	int steady = id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE && id != CLOCK_TAI;
	return look() + (steady ? uptime : epoch);
}

static int told(clockid_t id) {
	if (!steadyIsSeen && id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE)
		return 0; // real: a runtime waits by it
	return address && id != CLOCK_PROCESS_CPUTIME_ID && id != CLOCK_THREAD_CPUTIME_ID && id >= 0;
}

// looked is what a thread last saw on the monotonic clock if that shows real time; 0: it has not looked.
static __thread int64_t looked;

int clock_gettime(clockid_t id, struct timespec *t) {
	if (!told(id)) {
		REAL(int, clock_gettime, clockid_t, struct timespec *)
		int failed = next_clock_gettime ? next_clock_gettime(id, t) : (int)syscall(SYS_clock_gettime, id, t);
		if (!failed && id == CLOCK_MONOTONIC)
			looked = t->tv_sec * SECOND + t->tv_nsec;
		return failed;
	}
	int64_t ns = reading(id);
	t->tv_sec = ns / SECOND;
	t->tv_nsec = ns % SECOND;
	return 0;
}

int timespec_get(struct timespec *t, int base) { return clock_gettime(CLOCK_REALTIME, t) ? 0 : base; }

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

static void rest(int64_t ns) {
	if (ns > 0)
		__atomic_store_n(&elapsed, ask("sleep %lld\n", (long long)ns), __ATOMIC_RELAXED);
}

// now is what a clock shows without a look at it. A program that sleeps until an instant on a real clock has
// computed it from its last look, so from that on the time is the same in each run.
static int64_t now(clockid_t id) {
	if (told(id))
		return __atomic_load_n(&elapsed, __ATOMIC_RELAXED) + (id == CLOCK_REALTIME ? epoch : uptime);
	if (id == CLOCK_MONOTONIC && looked)
		return looked;
	struct timespec t;
	clock_gettime(id, &t);
	return t.tv_sec * SECOND + t.tv_nsec;
}

int clock_nanosleep(clockid_t id, int flags, const struct timespec *t, struct timespec *left) {
	if (!stepped) {
		REAL(int, clock_nanosleep, clockid_t, int, const struct timespec *, struct timespec *)
		return next_clock_nanosleep(id, flags, t, left);
	}
	int64_t ns = t->tv_sec * SECOND + t->tv_nsec;
	if (flags & TIMER_ABSTIME)
		ns -= now(id);
	rest(ns);
	return 0;
}

int nanosleep(const struct timespec *t, struct timespec *left) {
	if (!stepped) {
		REAL(int, nanosleep, const struct timespec *, struct timespec *)
		return next_nanosleep(t, left);
	}
	rest(t->tv_sec * SECOND + t->tv_nsec);
	return 0;
}

int usleep(useconds_t us) {
	struct timespec t = {us / 1000000, us % 1000000 * 1000};
	return nanosleep(&t, 0);
}

unsigned sleep(unsigned s) {
	struct timespec t = {s, 0};
	nanosleep(&t, 0);
	return 0;
}

int select(int n, fd_set *restrict in, fd_set *restrict out, fd_set *restrict odd, struct timeval *restrict t) {
	if (in && n > 0 && FD_ISSET(0, in))
		begin(0);
	if (stepped && t && (n == 0 || (!in && !out && !odd))) {
		rest(t->tv_sec * SECOND + t->tv_usec * 1000);
		return 0;
	}
	if (stepped && t && (t->tv_sec || t->tv_usec))
		t = 0; // as in poll
	REAL(int, select, int, fd_set *restrict, fd_set *restrict, fd_set *restrict, struct timeval *restrict)
	return next_select(n, in, out, odd, t);
}

int poll(struct pollfd *fds, nfds_t n, int ms) {
	for (nfds_t i = 0; i < n; i++)
		if (fds[i].fd == 0)
			begin(0);
	if (stepped && n == 0 && ms > 0) {
		rest(ms * 1000000LL);
		return 0;
	}
	if (stepped && ms > 0)
		ms = -1; // the search decides whether an answer comes, and breaks the connection if not
	REAL(int, poll, struct pollfd *, nfds_t, int)
	return next_poll(fds, n, ms);
}

int epoll_ctl(int epoll, int op, int fd, struct epoll_event *event) {
	if (fd == 0)
		begin(1); // processes that are forked would share it
	REAL(int, epoll_ctl, int, int, int, struct epoll_event *)
	return next_epoll_ctl(epoll, op, fd, event);
}

ssize_t read(int fd, void *to, size_t n) {
	if (fd == 0)
		begin(0);
	REAL(ssize_t, read, int, void *, size_t)
	return next_read ? next_read(fd, to, n) : rawRead(fd, to, n);
}

int setsockopt(int fd, int level, int option, const void *value, socklen_t size) {
	if (address && level == SOL_SOCKET && (option == SO_RCVTIMEO || option == SO_SNDTIMEO))
		return 0; // as in poll
	REAL(int, setsockopt, int, int, int, const void *, socklen_t)
	return next_setsockopt(fd, level, option, value, size);
}

static int outside(int fd, const struct sockaddr *to) {
	int type = 0;
	socklen_t size = sizeof type;
	return address && (to->sa_family == AF_INET || to->sa_family == AF_INET6) && !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) && type == SOCK_STREAM;
}

// libuuid makes its numbers of the time, of a file that all processes share and of a service. It draws them here.
int uuid_generate_time_safe(unsigned char *id) {
	if (getrandom(id, 16, 0) != 16)
		return -1;
	id[6] = (id[6] & 0x0f) | 0x40; // version 4 of RFC 9562
	id[8] = (id[8] & 0x3f) | 0x80;
	return 0;
}

void uuid_generate_time(unsigned char *id) { uuid_generate_time_safe(id); }

// Sockets of services that the C library asks by itself, for users and hosts: they are not there.
static const char *const services[] = {"/var/run/nscd/", "/run/nscd/", "/run/systemd/", "/dev/log"};

// leads tells whether a connection to a socket in the file system leads to where the search does not see it.
static int leads(const struct sockaddr *to, socklen_t size) {
	const struct sockaddr_un *a = (const struct sockaddr_un *)to;
	int length = (int)size - (int)offsetof(struct sockaddr_un, sun_path);
	if (!address || to->sa_family != AF_UNIX || length <= 0)
		return 0;
	for (size_t i = 0; i < sizeof services / sizeof *services; i++)
		if (length > (int)strlen(services[i]) && !strncmp(a->sun_path, services[i], strlen(services[i])))
			return 1;
	begin(1);
	if (control < 0)
		return 0; // a program that starts the one that is stepped
	ask("unix %.*s\n", length > 1 && !a->sun_path[0] ? length - 1 : length, a->sun_path + !a->sun_path[0]);
	return 1;
}

static int portOf(const struct sockaddr *a) {
	return ntohs(a->sa_family == AF_INET ? ((const struct sockaddr_in *)a)->sin_port : ((const struct sockaddr_in6 *)a)->sin6_port);
}

// ports are those of the connections that the program has made.
static int ports[1024];

int close(int fd) {
	if (stepped && fd >= 0 && fd < 1024 && ports[fd]) {
		ask("gone %d\n", ports[fd]);
		ports[fd] = 0;
	}
	return (int)syscall(SYS_close, fd);
}

int connect(int fd, const struct sockaddr *to, socklen_t size) {
	REAL(int, connect, int, const struct sockaddr *, socklen_t)
	if (leads(to, size)) {
		errno = ECONNREFUSED;
		return -1;
	}
	if (!outside(fd, to))
		return next_connect(fd, to, size);
	begin(1);
	char host[INET6_ADDRSTRLEN] = "";
	const void *ip = to->sa_family == AF_INET ? (const void *)&((const struct sockaddr_in *)to)->sin_addr : &((const struct sockaddr_in6 *)to)->sin6_addr;
	inet_ntop(to->sa_family, ip, host, sizeof host);
	if (!ask("to %s %d\n", host, portOf(to))) {
		errno = ECONNREFUSED;
		return -1;
	}
	int failed = next_connect(fd, to, size), why = errno;
	struct sockaddr_storage self = {0};
	socklen_t room = sizeof self;
	if (!failed || why == EINPROGRESS) {
		getsockname(fd, (struct sockaddr *)&self, &room);
		int port = portOf((struct sockaddr *)&self);
		ask("from %d\n", port);
		if (fd < 1024)
			ports[fd] = port;
	}
	errno = why;
	return failed;
}

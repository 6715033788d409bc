/* Preloaded into a program, in place of functions of the C library. It gives the program a wall clock that a test can set and a disk that a
   test can fill, and it writes down what the program has had flushed to its disk. Everything else stays as it is: other clocks, and the
   files themselves. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static int step_file = -1;
static int flushed_file = -1;
static int full_file = -1;
static int refused_file = -1;

static int opened(const char *variable, int how) {
    const char *path = getenv(variable);
    return path ? open(path, how | O_CLOEXEC) : -1;
}

__attribute__((constructor)) static void open_files(void) {
    step_file = opened("MACHINE_CLOCK_STEP", O_RDONLY);
    flushed_file = opened("MACHINE_FLUSHED", O_WRONLY | O_APPEND);
    full_file = opened("MACHINE_FULL", O_RDONLY);
    refused_file = opened("MACHINE_REFUSED", O_WRONLY | O_APPEND);
}

/* By how many seconds the wall clock has stepped. */
static time_t step(void) {
    int64_t seconds = 0;
    return pread(step_file, &seconds, sizeof seconds, 0) == sizeof seconds ? (time_t)seconds : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    long result = syscall(SYS_clock_gettime, clock, now);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += step();
    return (int)result;
}

int gettimeofday(struct timeval *now, void *zone) {
    struct timespec precise;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &precise);
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *copy) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (copy) *copy = now.tv_sec;
    return now.tv_sec;
}

/* When a wait ends that a program has put on its clock: on that of the machine underneath. Nobody waits until 2001, so a smaller time is on
   a clock that counts from the machine's start. */
static clockid_t underneath(struct timespec *until) {
    if (until->tv_sec < 1000000000) return CLOCK_MONOTONIC;
    until->tv_sec -= step();
    return CLOCK_REALTIME;
}

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *limit) {
    struct timespec until = *limit;
    clockid_t clock = underneath(&until);
    return pthread_cond_clockwait(condition, mutex, clock, &until);
}

int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *limit) {
    struct timespec until = *limit;
    clockid_t clock = underneath(&until);
    return pthread_mutex_clocklock(mutex, clock, &until);
}

int sem_timedwait(sem_t *semaphore, const struct timespec *limit) {
    struct timespec until = *limit;
    clockid_t clock = underneath(&until);
    return sem_clockwait(semaphore, clock, &until);
}

/* Flushes a file, and adds a line with its inode and size. The size is from before: what is written meanwhile may not be flushed. */
static int flush(long how, int file) {
    struct stat before;
    int is_known = fstat(file, &before) == 0;
    long result = syscall(how, file);
    if (result == 0 && is_known && flushed_file >= 0)
        dprintf(flushed_file, "%llu %lld\n", (unsigned long long)before.st_ino, (long long)before.st_size);
    return (int)result;
}

int fsync(int file) { return flush(SYS_fsync, file); }

int fdatasync(int file) { return flush(SYS_fdatasync, file); }

/* Whether a file is in the folder whose disk is full. */
static int is_full(int file) {
    char folder[PATH_MAX], path[PATH_MAX], link[32];
    ssize_t length = pread(full_file, folder, sizeof folder, 0);
    if (length <= 0) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    return readlink(link, path, sizeof path) > length && memcmp(folder, path, (size_t)length) == 0 && path[length] == '/';
}

static ssize_t refuse(void) {
    syscall(SYS_write, refused_file, "x", 1);
    errno = ENOSPC;
    return -1;
}

ssize_t write(int file, const void *bytes, size_t length) {
    return is_full(file) ? refuse() : syscall(SYS_write, file, bytes, length);
}

ssize_t pwrite(int file, const void *bytes, size_t length, off_t at) {
    return is_full(file) ? refuse() : syscall(SYS_pwrite64, file, bytes, length, at);
}

ssize_t pwrite64(int file, const void *bytes, size_t length, off64_t at) {
    return is_full(file) ? refuse() : syscall(SYS_pwrite64, file, bytes, length, at);
}

ssize_t writev(int file, const struct iovec *parts, int count) {
    return is_full(file) ? refuse() : syscall(SYS_writev, file, parts, count);
}

/* The kernel takes the place in two halves; the upper one is for machines of 32 bits. */
ssize_t pwritev(int file, const struct iovec *parts, int count, off_t at) {
    return is_full(file) ? refuse() : syscall(SYS_pwritev, file, parts, count, at, 0);
}

ssize_t pwritev64(int file, const struct iovec *parts, int count, off64_t at) {
    return is_full(file) ? refuse() : syscall(SYS_pwritev, file, parts, count, at, 0);
}

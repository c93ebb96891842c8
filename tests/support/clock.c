/*
 * A settable time of day for servers under test, preloaded into their processes.
 *
 * The file that HEADRACE_TEST_CLOCK names holds three 64-bit integers, mapped and shared:
 *
 *     held_ns   nanoseconds since 1970 that every read gives; 0 lets the time pass as it does
 *     step_ns   how far each read moves held_ns
 *     skew_ns   how far the time that passes is ahead of the machine's
 *
 * So several processes agree on the time, a test sets it between two commands, and with a step the
 * time moves within a command, too. Monotonic clocks are left alone: timers and polls go on.
 */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

struct shared {
    int64_t held_ns;
    int64_t step_ns;
    int64_t skew_ns;
};

static struct shared real_time;
static struct shared *shared = &real_time;
static int (*next_clock_gettime)(clockid_t, struct timespec *);

__attribute__((constructor)) static void open_clock(void)
{
    next_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    const char *path = getenv("HEADRACE_TEST_CLOCK");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *page = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (page != MAP_FAILED)
        shared = page;
}

static int64_t read_held(void)
{
    int64_t held_ns = __atomic_load_n(&shared->held_ns, __ATOMIC_ACQUIRE);
    int64_t step_ns = __atomic_load_n(&shared->step_ns, __ATOMIC_ACQUIRE);
    if (!held_ns || !step_ns)
        return held_ns;
    return __atomic_fetch_add(&shared->held_ns, step_ns, __ATOMIC_ACQ_REL);
}

int clock_gettime(clockid_t which, struct timespec *now)
{
    if (!next_clock_gettime)
        next_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    if (which != CLOCK_REALTIME && which != CLOCK_REALTIME_COARSE)
        return next_clock_gettime(which, now);
    int64_t held_ns = read_held();
    if (!held_ns) {
        int failed = next_clock_gettime(which, now);
        int64_t skew_ns = __atomic_load_n(&shared->skew_ns, __ATOMIC_ACQUIRE);
        if (failed || !skew_ns)
            return failed;
        held_ns = now->tv_sec * 1000000000 + now->tv_nsec + skew_ns;
    }
    now->tv_sec = held_ns / 1000000000;
    now->tv_nsec = held_ns % 1000000000;
    return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec exact;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &exact))
        return -1;
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *now)
{
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (now)
        *now = exact.tv_sec;
    return exact.tv_sec;
}

/* Strikes at the N-th call of this process that changes, syncs or opens something below one folder: the process is
 * killed before it, or the call fails. Loaded by LD_PRELOAD; armed in the child of a fork by `fault_arm`.
 *
 * Syncing such files is only counted: a process that is killed loses nothing that it has written. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { WRITE = 1, SYNC = 2, TRUNCATE = 4, RENAME = 8, LINK = 16, UNLINK = 32, CREATE = 64, MAKE = 128, OPEN = 256,
       OPEN_TO_WRITE = 512 };

static char home[PATH_MAX];
static size_t home_length;
static int error;         /* 0: kill */
static long first, last;  /* the calls that are struck, counted from 1 */
static unsigned struck_calls;

/* Shared with the parent: the calls that counted, and the kind of the first one that was struck. */
static struct { long counted; long struck; } *seen;

__attribute__((constructor)) static void prepare(void)
{
    seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

void fault_arm(const char *folder, int number, long from, long to, unsigned calls)
{
    seen->counted = seen->struck = 0;
    strncpy(home, folder, sizeof home - 1);
    home_length = strlen(home);
    error = number;
    first = from;
    last = to;
    struck_calls = calls;
}

long fault_counted(void) { return seen->counted; }
long fault_struck(void) { return seen->struck; }

static int is_below(const char *path)
{
    return strncmp(path, home, home_length) == 0 && (path[home_length] == '/' || path[home_length] == 0);
}

static int strikes(unsigned call)
{
    long number = __sync_add_and_fetch(&seen->counted, 1);
    if (number < first || number > last)
        return 0;
    __sync_val_compare_and_swap(&seen->struck, 0, call);
    if (error == 0)
        for (;;)
            kill(getpid(), SIGKILL);
    errno = error;
    return 1;
}

static int is_file_below(int file)
{
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    path[length < 0 ? 0 : length] = 0;
    return is_below(path);
}

static int strikes_file(unsigned call, int file)
{
    int before = errno;
    int counts = home_length && (struck_calls & call) && is_file_below(file);
    errno = before;
    return counts && strikes(call);
}

static int strikes_path(unsigned call, int folder, const char *path)
{
    if (!home_length || !(struck_calls & call))
        return 0;
    if (path[0] != '/' && folder != AT_FDCWD)
        return strikes_file(call, folder);
    return is_below(path) && strikes(call);
}

#define REAL(type, name, parameters) \
    static type (*real) parameters; \
    if (!real) real = dlsym(RTLD_NEXT, #name);

#define ON_FILE(call, type, name, parameters, arguments) \
    type name parameters { REAL(type, name, parameters) if (strikes_file(call, file)) return -1; return real arguments; }

#define SYNCING(name) \
    int name(int file) { REAL(int, name, (int)) if (!home_length || !is_file_below(file)) return real(file); \
                         return strikes_file(SYNC, file) ? -1 : 0; }

#define ON_PATH(call, name, parameters, folder, path, arguments) \
    int name parameters { REAL(int, name, parameters) if (strikes_path(call, folder, path)) return -1; return real arguments; }

ON_FILE(WRITE, ssize_t, write, (int file, const void *data, size_t size), (file, data, size))
ON_FILE(WRITE, ssize_t, pwrite, (int file, const void *data, size_t size, off_t at), (file, data, size, at))
ON_FILE(WRITE, ssize_t, pwrite64, (int file, const void *data, size_t size, off64_t at), (file, data, size, at))
ON_FILE(WRITE, ssize_t, writev, (int file, const struct iovec *parts, int count), (file, parts, count))
ON_FILE(WRITE, ssize_t, sendfile, (int file, int from, off_t *at, size_t size), (file, from, at, size))
ON_FILE(WRITE, ssize_t, sendfile64, (int file, int from, off64_t *at, size_t size), (file, from, at, size))
ON_FILE(WRITE, int, posix_fallocate, (int file, off_t at, off_t size), (file, at, size))
ON_FILE(WRITE, int, posix_fallocate64, (int file, off64_t at, off64_t size), (file, at, size))
ON_FILE(TRUNCATE, int, ftruncate, (int file, off_t size), (file, size))
ON_FILE(TRUNCATE, int, ftruncate64, (int file, off64_t size), (file, size))
SYNCING(fsync)
SYNCING(fdatasync)
ON_PATH(TRUNCATE, truncate, (const char *path, off_t size), AT_FDCWD, path, (path, size))
ON_PATH(RENAME, rename, (const char *from, const char *to), AT_FDCWD, to, (from, to))
ON_PATH(RENAME, renameat, (int one, const char *from, int other, const char *to), other, to, (one, from, other, to))
ON_PATH(LINK, link, (const char *from, const char *to), AT_FDCWD, to, (from, to))
ON_PATH(LINK, linkat, (int one, const char *from, int other, const char *to, int flags), other, to,
        (one, from, other, to, flags))
ON_PATH(LINK, symlink, (const char *target, const char *path), AT_FDCWD, path, (target, path))
ON_PATH(UNLINK, unlink, (const char *path), AT_FDCWD, path, (path))
ON_PATH(UNLINK, unlinkat, (int folder, const char *path, int flags), folder, path, (folder, path, flags))
ON_PATH(UNLINK, rmdir, (const char *path), AT_FDCWD, path, (path))
ON_PATH(MAKE, mkdir, (const char *path, mode_t mode), AT_FDCWD, path, (path, mode))
ON_PATH(MAKE, mkdirat, (int folder, const char *path, mode_t mode), folder, path, (folder, path, mode))

#define MODE(flags) \
    mode_t mode = 0; \
    if ((flags) & (O_CREAT | __O_TMPFILE)) { va_list rest; va_start(rest, flags); mode = va_arg(rest, mode_t); va_end(rest); }

static int strikes_open(int folder, const char *path, int flags)
{
    if (!home_length)
        return 0;
    unsigned call = OPEN;
    if ((flags & O_ACCMODE) != O_RDONLY) {
        int before = errno;
        call |= (flags & O_CREAT) && faccessat(folder, path, F_OK, AT_SYMLINK_NOFOLLOW) != 0 ? CREATE : OPEN_TO_WRITE;
        errno = before;
    }
    return strikes_path(call, folder, path);
}

#define OPENING(name) \
    int name(const char *path, int flags, ...) { \
        MODE(flags) REAL(int, name, (const char *, int, ...)) \
        return strikes_open(AT_FDCWD, path, flags) ? -1 : real(path, flags, mode); }

#define OPENING_AT(name) \
    int name(int folder, const char *path, int flags, ...) { \
        MODE(flags) REAL(int, name, (int, const char *, int, ...)) \
        return strikes_open(folder, path, flags) ? -1 : real(folder, path, flags, mode); }

OPENING(open)
OPENING(open64)
OPENING_AT(openat)
OPENING_AT(openat64)

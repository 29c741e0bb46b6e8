// A preloaded library that makes the disk below a ZooKeeper server slow or full, and notes what the server
// has synced. It looks only at files below DIRECTORY/data/version-2. Files in DIRECTORY tell it what to do:
//
//   slow     the number of milliseconds that each sync takes longer, and each write that fails
//   full     the number of bytes that can be written from now on; then writes fail with ENOSPC
//   synced/  written by the library: for each file, the length of what had been written at its last sync
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char inside[] = "/data/version-2/";

static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_pwrite)(int, const void *, size_t, off64_t);
static int (*real_fsync)(int);
static int (*real_fdatasync)(int);

__attribute__((constructor)) static void find(void) {
	real_write = dlsym(RTLD_NEXT, "write");
	real_pwrite = dlsym(RTLD_NEXT, "pwrite64");
	real_fsync = dlsym(RTLD_NEXT, "fsync");
	real_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
}

// on_disk reports whether fd is a file on the disk, and sets the server's directory and the file's name.
static int on_disk(int fd, char *dir, const char **name) {
	char link[64];
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, dir, PATH_MAX - 1);
	if (n < 0) return 0;
	dir[n] = 0;
	char *at = strstr(dir, inside);
	if (at == NULL) return 0;
	*at = 0;
	*name = at + strlen(inside);
	return 1;
}

// setting returns the number in a file of the server's directory, or -1 if there is no such file.
static long setting(const char *dir, const char *name) {
	char path[PATH_MAX + 32], text[32] = "";
	snprintf(path, sizeof path, "%s/%s", dir, name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) return -1;
	ssize_t n = read(fd, text, sizeof text - 1);
	close(fd);
	return n <= 0 ? -1 : atol(text);
}

// delay sleeps as long as the disk is slow.
static void delay(const char *dir) {
	for (long slept = 0; slept < setting(dir, "slow"); slept += 5) usleep(5000);
}

// room returns how many of n bytes can be written.
static size_t room(int fd, size_t n) {
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	static long used;
	char dir[PATH_MAX];
	const char *name;
	if (!on_disk(fd, dir, &name)) return n;
	long all = setting(dir, "full");
	pthread_mutex_lock(&mutex);
	if (all < 0) {
		used = 0;
	} else {
		n = all - used < (long)n ? (size_t)(all > used ? all - used : 0) : n;
		used += n;
	}
	pthread_mutex_unlock(&mutex);
	return n;
}

// no_space fails as a write does on a disk that is full. If the disk is slow too, that takes a while.
static ssize_t no_space(int fd) {
	char dir[PATH_MAX];
	const char *name;
	if (on_disk(fd, dir, &name)) delay(dir);
	errno = ENOSPC;
	return -1;
}

ssize_t write(int fd, const void *bytes, size_t n) {
	size_t some = room(fd, n);
	return some == 0 && n > 0 ? no_space(fd) : real_write(fd, bytes, some);
}

ssize_t pwrite64(int fd, const void *bytes, size_t n, off64_t at) {
	size_t some = room(fd, n);
	return some == 0 && n > 0 ? no_space(fd) : real_pwrite(fd, bytes, some, at);
}

// note writes down how much of a file has been synced: all before its position, since the file is appended to.
static void note(const char *dir, const char *name, off64_t length) {
	char path[PATH_MAX + 300], text[32];
	snprintf(path, sizeof path, "%s/synced", dir);
	mkdir(path, 0755);
	snprintf(path, sizeof path, "%s/synced/%s", dir, name);
	int out = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (out < 0) return;
	int n = snprintf(text, sizeof text, "%020lld", (long long)length);
	real_pwrite(out, text, n, 0);
	close(out);
}

static int sync_file(int fd, int (*real)(int)) {
	char dir[PATH_MAX];
	const char *name;
	if (!on_disk(fd, dir, &name)) return real(fd);
	off64_t length = lseek64(fd, 0, SEEK_CUR);
	delay(dir);
	int failed = real(fd);
	if (!failed) note(dir, name, length);
	return failed;
}

int fsync(int fd) { return sync_file(fd, real_fsync); }
int fdatasync(int fd) { return sync_file(fd, real_fdatasync); }

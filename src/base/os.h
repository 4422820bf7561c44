/* Everything hone asks of the operating system: files, clock, memory, processors, libraries. */
#ifndef HN_BASE_OS_H
#define HN_BASE_OS_H

#include <hone/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Monotonic nanoseconds. */
uint64_t hn_now_ns(void);
/* Nanoseconds of another clock (not adjusted by NTP), for outer walls that check the first. */
uint64_t hn_now_raw_ns(void);
void hn_sleep_ms(unsigned ms);

/* A read-only view of a regular file. */
typedef struct hn_file {
  const uint8_t *data; /* never NULL after success, also for an empty file */
  size_t size;
} hn_file;

/* Maps a regular file. `beneath`, if not NULL, is a folder: path is relative to it and must name a regular
 * file with one hard link strictly below it, without symbolic links on the way or ".." (for external data of
 * untrusted models). */
hone_status hn_file_map(const char *path, const char *beneath, hn_file *out, hone_error *error);
void hn_file_unmap(hn_file *file);
/* Takes the pages around [at, at + size) out of memory; reading brings them back. */
void hn_file_drop(const hn_file *file, size_t at, size_t size);

/* Writes a whole file through a temporary one in the same folder and renames it: old content or new, never
 * half. */
hone_status hn_file_write(const char *path, const void *data, size_t size, hone_error *error);
/* The same piece by piece: open, write any number of times, then commit (renames) or abandon (nothing is
 * left). After a failed write only abandon is allowed; commit abandons by itself when it fails. */
typedef struct hn_writer {
  int fd;
  char *path, *temp;
} hn_writer;
hone_status hn_writer_open(const char *path, hn_writer *out, hone_error *error);
hone_status hn_writer_write(hn_writer *writer, const void *data, size_t size, hone_error *error);
hone_status hn_writer_commit(hn_writer *writer, hone_error *error);
void hn_writer_abandon(hn_writer *writer);
/* True when something of that name exists. */
bool hn_path_exists(const char *path);
/* Creates a folder and its parents (mode 0777 & ~umask). */
hone_status hn_mkdirs(const char *path, hone_error *error);
/* Folder for caches ("$XDG_CACHE_HOME/hone" or "$HOME/.cache/hone") into buf; false when there is none. */
bool hn_cache_dir(char *buf, size_t size);

/* Processors this process may run on. */
uint32_t hn_cpu_count(void);
/* Size in bytes of the data cache of a level (1, 2, 3) of processor 0; 0 when the system does not say. */
size_t hn_cache_size(int level);
/* "AMD EPYC 9B14" into buf. */
void hn_cpu_name(char *buf, size_t size);
/* Asks for huge pages under [p, p + size): fewer address translations for what is streamed through. A hint
 * only. */
void hn_advise_huge(void *p, size_t size);
/* `size` readable zeros that take no memory; NULL when there is no room for them. */
const void *hn_zeros(size_t size);
void hn_zeros_free(const void *p, size_t size);
/* Gives the whole pages inside of [p, p + size) back to the system: what was there is lost. */
void hn_release_pages(void *p, size_t size);

/* Resident set of this process now and at its peak; available memory of the system. 0: not known. */
uint64_t hn_rss_bytes(void);
uint64_t hn_rss_peak_bytes(void);

/* Seconds for which the processors that this process may use were busy since the system's start, whoever used
 * them, other guests of the host included; negative: the system does not say. */
double hn_cpu_busy_seconds(void);
/* Processor time of this process, all threads. */
double hn_cpu_own_seconds(void);
/* How often threads of this process lost their processor without asking. */
uint64_t hn_involuntary_switches(void);
/* Seconds in which threads of this process could have run but waited for a processor, all threads together;
 * negative: the system does not count it. */
double hn_run_delay_seconds(void);
uint64_t hn_memory_available(void);

/* Shared libraries. */
void *hn_library_open(const char *name, hone_error *error);
void *hn_library_symbol(void *library, const char *symbol);
void hn_library_close(void *library);
/* The folder of the executable or shared library that hone's code is in; false when the system does not say.
 */
bool hn_own_folder(char *buf, size_t size);

#endif

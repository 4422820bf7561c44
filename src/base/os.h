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

/* ---- reading (linux/read.c): regular files only, nothing that waits, no more bytes than their kind may have
 */

typedef enum hn_file_kind {
  HN_FILE_MODEL,    /* a model, or a tensor of ONNX */
  HN_FILE_WEIGHTS,  /* a model's external data */
  HN_FILE_PLAN,     /* a saved plan */
  HN_FILE_DATA,     /* inputs: arrays and pictures */
  HN_FILE_PROFILE,  /* another tool's record, read piece by piece */
  HN_FILE_DATABASE, /* the same, or a history */
  HN_FILE_CACHE,    /* what hone keeps in its own folder */
  HN_FILE_TEXT      /* what is read whole into memory: labels, reports */
} hn_file_kind;

/* Opens a regular file for reading; *out is the descriptor (-1 after an error), *size its bytes. `beneath`,
 * if not NULL, is a folder: path is relative to it and must name a regular file with one hard link strictly
 * below it, without symbolic links on the way or ".." (for external data of untrusted models).
 * HONE_ERROR_INPUT for folders, pipes, devices, and what is too large. */
hone_status hn_file_open(const char *path, const char *beneath, hn_file_kind kind, int *out, uint64_t *size,
                         hone_error *error);
/* Reads until `room` bytes are there or the file ends. */
hone_status hn_file_pull(int fd, void *to, size_t room, size_t *got, hone_error *error);
/* The first bytes of a file of any kind, to see what it is; returns how many. 0: none, or no regular file. */
size_t hn_file_begin(const char *path, void *to, size_t room);

/* A read-only view of a regular file. */
typedef struct hn_file {
  const uint8_t *data; /* never NULL after success, also for an empty file */
  size_t size;
} hn_file;

hone_status hn_file_map(const char *path, const char *beneath, hn_file_kind kind, hn_file *out,
                        hone_error *error);
void hn_file_unmap(hn_file *file);
/* Takes the pages around [at, at + size) out of memory; reading brings them back. */
void hn_file_drop(const hn_file *file, size_t at, size_t size);
/* The descriptor that "/dev/stdin", "/dev/fd/3" and the like name; -1 for every other path. */
int hn_own_descriptor(const char *path);

/* ---- writing (linux/write.c) */

/* Writes a whole file through a temporary one in the same folder and renames it: old content or new, never
 * half, and on the disk before the name says so. Any number of threads and processes may write one path. */
hone_status hn_file_write(const char *path, const void *data, size_t size, hone_error *error);
/* The same piece by piece: open, write any number of times, then commit (renames) or abandon (nothing is
 * left). After a failed write only abandon is allowed; commit abandons by itself when it fails. Devices,
 * pipes and own descriptors ("/dev/stdout") are written to in place. A link in the path's place is replaced,
 * never followed. */
typedef struct hn_writer {
  int fd, dir;
  char *path;
  char temp[32]; /* in dir; "": written in place */
  int slot;
} hn_writer;
hone_status hn_writer_open(const char *path, hn_writer *out, hone_error *error);
/* Adds to the end of a file that others write, too. Never through a link. */
hone_status hn_writer_append(const char *path, hn_writer *out, hone_error *error);
hone_status hn_writer_write(hn_writer *writer, const void *data, size_t size, hone_error *error);
/* The path of the temporary file, for who can only write by name; false when there is none. */
bool hn_writer_temporary(const hn_writer *writer, char *buf, size_t size);
hone_status hn_writer_commit(hn_writer *writer, hone_error *error);
void hn_writer_abandon(hn_writer *writer);
/* Removes the unfinished files of this process, which is about to end. Signal handlers may call it. */
void hn_writer_abandon_all(void);

/* ---- folders */

/* True when something of that name exists. */
bool hn_path_exists(const char *path);
bool hn_is_folder(const char *path);
/* The names in a folder, in the order of their bytes, without those that begin with a dot; each and the list
 * are freed with hn_free. *names is NULL after an error. */
hone_status hn_folder_list(const char *path, char ***names, size_t *n, hone_error *error);
/* Size and time of the last change (ns) of a file or folder; false when there is none. */
bool hn_file_stamp(const char *path, uint64_t *size, int64_t *changed_ns);
/* Creates a folder and its parents (mode 0777 & ~umask). */
hone_status hn_mkdirs(const char *path, hone_error *error);
/* Folder for caches ("$XDG_CACHE_HOME/hone" or "$HOME/.cache/hone") into buf; false when there is none. */
bool hn_cache_dir(char *buf, size_t size);

/* Processors this process may run on. */
uint32_t hn_cpu_count(void);
/* Threads that can run all the time: those processors, but no more than the time that the container grants
 * (docker --cpus, a Kubernetes limit). At least 1. */
uint32_t hn_thread_count(void);
/* Size in bytes of the data cache of a level (1, 2, 3) of processor 0; 0 when the system does not say. */
size_t hn_cache_size(int level);
/* Bytes of all different caches of that level together that the processors of this process have: some chips
 * have a last level for every few of them. 0 when the system does not say. */
size_t hn_cache_total(int level);
/* "AMD EPYC 9B14" into buf. */
void hn_cpu_name(char *buf, size_t size);
/* Asks for huge pages under [p, p + size): fewer address translations for what is streamed through. A hint
 * only. */
void hn_advise_huge(void *p, size_t size);
/* Has the whole pages inside of [p, p + size) given now and together, which takes half of the time that a
 * fault for each of them takes. A hint only. */
void hn_bring_pages(void *p, size_t size);
/* `size` bytes of zeros, whole pages at a multiple of `align`; NULL when there are none. */
void *hn_map_pages(size_t align, size_t size);
void hn_unmap_pages(void *p, size_t size);
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
/* The most bytes that the container of this process may have; 0: no limit is known. */
uint64_t hn_memory_limit(void);

/* Shared libraries. */
void *hn_library_open(const char *name, hone_error *error);
void *hn_library_symbol(void *library, const char *symbol);
void hn_library_close(void *library);
/* Of the program or the libraries that it started with; NULL: they have no such. */
void *hn_loaded_symbol(const char *symbol);
/* The folder of the executable or shared library that hone's code is in; false when the system does not say.
 */
bool hn_own_folder(char *buf, size_t size);

#endif

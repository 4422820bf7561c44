/* Files as hone itself reads and writes them, for who writes reports through a hone_sink. */
#ifndef HONE_FILE_H
#define HONE_FILE_H

#include <hone/status.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A file that appears whole or not at all: it is written under another name in the same folder, reaches the
 * disk, and only then takes the place of what was there. Threads and processes may write one path at the same
 * time; the last one stays. A symbolic link in the path's place is replaced, never followed. Devices, pipes
 * and the process's own descriptors ("/dev/stdout", "/dev/fd/3") are written to in place. One thread a
 * writer. */
typedef struct hone_writer hone_writer;

/* HONE_ERROR_IO when nothing can be written there. End it with hone_writer_commit or hone_writer_abandon. */
HONE_API hone_status hone_writer_open(const char *path, hone_writer **out, hone_error *error);
/* The same for a file that is added to and that others write, too: nothing is renamed. */
HONE_API hone_status hone_writer_append(const char *path, hone_writer **out, hone_error *error);
/* A hone_sink whose user is a hone_writer. After an error only hone_writer_abandon is left to do. */
HONE_API hone_status hone_writer_sink(void *writer, const char *data, size_t length, hone_error *error);
/* Puts the file in its place and frees the writer, also when that fails: then nothing is left behind. */
HONE_API hone_status hone_writer_commit(hone_writer *writer, hone_error *error);
/* Leaves things as they were and frees the writer. NULL is fine. */
HONE_API void hone_writer_abandon(hone_writer *writer);
/* Removes what all unfinished writers of this process (hone's own, too) have written so far. For signal
 * handlers that end the process: only async-signal-safe calls. */
HONE_API void hone_writer_abandon_all(void);

/* Reads a regular file of at most `most` bytes whole; free *data with hone_file_free. A NUL that *size does
 * not count follows. HONE_ERROR_INPUT when it is a folder, pipe or device, or larger. Never waits. */
HONE_API hone_status hone_file_read(const char *path, size_t most, char **data, size_t *size,
                                    hone_error *error);
HONE_API void hone_file_free(char *data); /* NULL is fine */
/* The first bytes of a regular file, at most `room`; returns how many. 0 when it cannot be read. */
HONE_API size_t hone_file_begin(const char *path, void *data, size_t room);

#ifdef __cplusplus
}
#endif
#endif

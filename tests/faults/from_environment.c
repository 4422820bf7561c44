/* Linked into a copy of the command (hone_faulty): HONE_FAIL_CALL=N lets its N-th call to the system fail;
 * with HONE_FAIL_EVENTS=FILE nothing fails and all calls are noted there. */
#include "faults/from_environment.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static fault_log *events;

__attribute__((constructor)) static void begin(void) {
  const char *call = getenv("HONE_FAIL_CALL"), *path = getenv("HONE_FAIL_EVENTS");
  if (call) fault_arm(strtoull(call, NULL, 10), FAULT_ONCE, NULL, 0);
  int fd = path ? open(path, O_RDWR) : -1;
  if (fd < 0) return;
  events = mmap(NULL, sizeof *events, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (events == MAP_FAILED) abort();
  fault_arm(0, FAULT_RECORD, events->event, FAULT_LOG_ROOM);
}

__attribute__((destructor)) static void end(void) {
  uint64_t calls = fault_disarm();
  if (events) events->calls = calls;
}

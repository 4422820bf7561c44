#include "driver_rig.h"
#include "backends/cuda/driver/queue.h"
#include "base/os.h"
#include "skipped.h"

#include <dirent.h>
#include <sys/wait.h>

/* ------------------------------------------------------------------ a process for each case */

void rig_must_ok(hone_status status, const answer *a, int line, const char *text) {
  if (status == HONE_OK) return;
  char why[1200];
  hone_error_format(&a->error, why, sizeof why);
  fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, line, text, why);
  _exit(99);
}

static char folder[256]; /* of this process's kernel cache */

answer rig_play(scene s, const char *const *settings) {
  int ends[2];
  answer a = {0};
  assert_int_equal(pipe(ends), 0);
  fflush(NULL);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    alarm(60);
    close(ends[0]);
    setenv("HONE_FAKE_QUIET", "1", 1);
    setenv("HONE_KERNEL_CACHE", folder, 1);
    for (; settings && *settings; settings++) putenv((char *)(uintptr_t)*settings);
    s(&a);
    MUST(write(ends[1], &a, sizeof a) == (ssize_t)sizeof a);
    exit(0); /* not _exit: leak checkers look now */
  }
  close(ends[1]);
  size_t got = 0;
  for (ssize_t n; got < sizeof a && (n = read(ends[0], (char *)&a + got, sizeof a - got)) > 0;)
    got += (size_t)n;
  close(ends[0]);
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  if (!WIFEXITED(status) || WEXITSTATUS(status) || got != sizeof a)
    fail_msg("the case ended with %s %d", WIFSIGNALED(status) ? "signal" : "exit code",
             WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
  return a;
}

void rig_expect(const answer *a, hone_status status, const char *const *words) {
  char line[1400];
  hone_error_format(&a->error, line, sizeof line);
  if (a->error.status != status) fail_msg("status %d, expected %d: %s", a->error.status, status, line);
  assert_null(strchr(line, '\n'));
  for (; *words; words++)
    if (!strstr(line, *words)) fail_msg("'%s' is not in: %s", *words, line);
}

bool rig_fake(void) { return getenv("HONE_LIBCUDA") != NULL; }

/* ------------------------------------------------------------------ kernels of this test */

/* Device text in the prefix of a text that is there anyway: as generated code comes to the compiler. */
const char rig_text[] =
    "#include \"prelude.cuh\"\n"
    "typedef struct scale_args { const void *in; void *out; float by; int n; } scale_args;\n"
    "HN_KERNEL(scale, scale_args, a) {\n"
    "  const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);\n"
    "  if (i < a.n) ((float *)a.out)[i] = ((const float *)a.in)[i] * a.by;\n"
    "}\n"
    "HN_KERNEL(reverse, scale_args, a) {\n"
    "  HN_DYNAMIC_SHARED(float, all);\n"
    "  for (int i = (int)threadIdx.x; i < a.n; i += (int)blockDim.x) all[i] = ((const float *)a.in)[i];\n"
    "  HN_SYNC();\n"
    "  for (int i = (int)threadIdx.x; i < a.n; i += (int)blockDim.x)\n"
    "    ((float *)a.out)[i] = all[a.n - 1 - i] * a.by;\n"
    "}\n";

const hn_cuda_kernel rig_scale = {"types", rig_text, "scale"};
const hn_cuda_kernel rig_reverse = {"types", rig_text, "reverse"};

void rig_open(rig *r, answer *a) {
  *r = (rig){0};
  MUST_OK(b->open(0, 2, NULL, &r->d, &a->error));
  MUST_OK(b->queue_open(r->d, &r->q, &a->error));
  r->host = b->alloc_host(r->d, 2 * N * sizeof(float));
  r->x = b->alloc(r->d, N * sizeof(float));
  r->y = b->alloc(r->d, N * sizeof(float));
  MUST(r->host && r->x && r->y);
  for (int i = 0; i < N; i++) r->host[i] = (float)(i % 977) - 400;
}

void rig_close(rig *r) {
  b->free(r->d, r->x);
  b->free(r->d, r->y);
  b->free_host(r->d, r->host);
  b->queue_close(r->d, r->q);
  b->close(r->d);
}

hone_status rig_launch(rig *r, const hn_cuda_kernel *k, const void *in, void *out, float by,
                       hone_error *error) {
  hn_cuda_queue *lane;
  hone_status status = hn_cuda_lane(r->d, r->q, &lane, error);
  const rig_args args = {in, out, by, N};
  const bool whole = k == &rig_reverse;
  const hn_cuda_shape shape = {
      .grid = {whole ? 1 : (N + 255) / 256, 1, 1}, .threads = 256, .shared = whole ? N * sizeof(float) : 0};
  return status == HONE_OK ? hn_cuda_launch(lane, k, &shape, &args, sizeof args, error) : status;
}

hone_status rig_to_device(rig *r, hone_error *error) {
  return b->copy(r->d, r->q, r->x, r->host, N * sizeof(float), error);
}

hone_status rig_to_host(rig *r, const void *from, hone_error *error) {
  memset(r->host + N, 0xff, N * sizeof(float));
  hone_status status = b->copy(r->d, r->q, r->host + N, from, N * sizeof(float), error);
  return status == HONE_OK ? b->sync(r->d, r->q, error) : status;
}

void rig_must_be(const rig *r, float by, bool reversed) {
  for (int i = 0; i < N; i++) {
    const float want = (float)((reversed ? N - 1 - i : i) % 977) - 400;
    MUST(r->host[N + i] == want * by);
  }
}

void rig_work(answer *a) {
  rig r;
  rig_open(&r, a);
  MUST_OK(rig_to_device(&r, &a->error));
  MUST_OK(rig_launch(&r, &rig_scale, r.x, r.y, 3, &a->error));
  MUST_OK(rig_to_host(&r, r.y, &a->error));
  rig_must_be(&r, 3, false);
  rig_close(&r);
}

int rig_cubins(char *path, size_t size) {
  int n = 0;
  DIR *dir = opendir(folder);
  if (!dir) return 0;
  for (struct dirent *e; (e = readdir(dir));)
    if (strstr(e->d_name, ".cubin")) {
      if (!n++) snprintf(path, size, "%s/%s", folder, e->d_name);
    }
  closedir(dir);
  return n;
}

void rig_empty_cache(void) {
  char path[600];
  while (rig_cubins(path, sizeof path)) unlink(path);
}

/* In a process of its own: what has called the driver cannot fork any more. */
static bool has_gpu(void) {
  int status = 1;
  const pid_t child = fork();
  if (child == 0) _exit(hone_device_about("cuda", NULL, NULL) != HONE_OK);
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

int rig_run(const struct CMUnitTest *tests, size_t n) {
  const char *given = getenv("HONE_LIBCUDA");
  if (given ? !hn_path_exists(given) : !has_gpu()) {
    printf("SKIP: no GPU and no fake driver\n");
    return SKIPPED;
  }
  snprintf(folder, sizeof folder, "%s/hone_driver_%d", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp",
           (int)getpid());
  const int failed = _cmocka_run_group_tests("driver", tests, n, NULL, NULL);
  rig_empty_cache();
  rmdir(folder);
  return failed;
}

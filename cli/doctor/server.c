/* Can models be served? Tried at a port of this machine's own address, which is closed again. */
#include "cli/doctor/doctor.h"

#include <string.h>

void cli_check_server(const cli_patient *p, cli_check *out) {
  hone_engine *engine = NULL;
  hone_server *server = NULL;
  hone_error error = {0};
  const hone_engine_options o = {.threads = 1, .tuning = "off"};
  hone_status status = hone_engine_create(&o, &engine, &error);
  if (status == HONE_OK) status = hone_server_create(engine, NULL, &server, &error);
  if (status == HONE_OK) status = hone_server_listen(server, "127.0.0.1:0", NULL, &error);
  hone_server_destroy(server);
  hone_engine_destroy(engine);
  if (status == HONE_OK) {
    cli_found(p, out, "libmicrohttpd is here", "libmicrohttpd 可用");
    return;
  }
  cli_found(p, out, "%s", "%s", error.what);
  out->health = CLI_NOTE;
  if (status == HONE_ERROR_MISSING)
    cli_todo(p, out, "only for hone serve: apt-get install libmicrohttpd12",
             "仅 hone serve 需要：apt-get install libmicrohttpd12");
}

/* wild_pointers.c: a call that was given a pointer that leads nowhere. It ends the program by SIGSEGV, as
 * on a GPU; before that a line on stderr names the call and the address. */
#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/runtime.h"

static bool is_in_library_of(const void *known, const void *place, const char **function) {
  Dl_info found, library;
  if (!dladdr(place, &found) || !dladdr(known, &library)) return false;
  *function = found.dli_sname; /* NULL: it is not a public one */
  return found.dli_fbase == library.dli_fbase;
}

/* The call whose code, or a function of the C library for it, has made the access: the outermost of our
 * public functions before the program's own come. NULL: the program has made it. */
static const char *name_of_call(void) {
  enum { FRAMES_MOST = 64, OF_HANDLER = 3 }; /* this function, on_fault, the return from a signal */
  static const char here;
  void *frames[FRAMES_MOST];
  const char *name = NULL, *function;
  int count = backtrace(frames, FRAMES_MOST), i = OF_HANDLER;
  while (i < count && is_in_library_of((const void *)&memcpy, frames[i], &function)) i++;
  for (; i < count && is_in_library_of(&here, frames[i], &function); i++)
    if (function) name = function;
  return name;
}

void wild_pointer_report(const char *call, const void *address) {
  char text[512];
  int length =
      snprintf(text, sizeof text,
               "emulator: %s was given a wrong pointer: there is nothing at address 0x%llx\n", call,
               (unsigned long long)(uintptr_t)address);
  if (write(STDERR_FILENO, text, (size_t)length) < 0) _exit(1);
}

static void on_fault(int number, siginfo_t *info, void *context) {
  (void)context;
  const char *name = info->si_code > 0 ? name_of_call() : NULL;
  if (name) wild_pointer_report(name, info->si_addr);
  signal(number, SIG_DFL); /* the access is repeated, and ends the program */
  if (info->si_code <= 0) raise(number);
}

/* A handler of the program's own is left in place, and one that comes later replaces this one. */
__attribute__((constructor)) static void watch_faults(void) {
  struct sigaction before, action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
  if (sigaction(SIGSEGV, NULL, &before) == 0 && before.sa_handler == SIG_DFL)
    sigaction(SIGSEGV, &action, NULL);
}

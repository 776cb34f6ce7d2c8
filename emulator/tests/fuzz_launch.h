/* fuzz_launch.h: what runs a fuzzer's kernels: a second each, on one host thread. */
#pragma once

#include <signal.h>
#include <sys/time.h>

#include "fuzz_replay.h"
#include "machine/launch.h"

/* A loop around a barrier makes progress forever, so a CPU timer ends the launch as a fault would. */
static Launch *running;
static void end_launch(int signal) {
  (void)signal;
  if (running) running->error = 702; /* cudaErrorLaunchTimeout */
}

/* Before the first module is loaded, which reads the settings. */
static void prepare_launches(void) {
  setenv("EMULATOR_STEPS", "20000", 0);
  setenv("EMULATOR_THREADS", "1", 0);
  signal(SIGVTALRM, end_launch);
}

static void run_for_a_second(Launch *launch) {
  running = launch;
  setitimer(ITIMER_VIRTUAL, &(struct itimerval){.it_value.tv_sec = 1}, NULL);
  launch_run(launch);
  setitimer(ITIMER_VIRTUAL, &(struct itimerval){.it_value.tv_sec = 0}, NULL);
  running = NULL;
}

#ifdef FUZZING
int on_exit(void (*function)(int, void *), void *argument) {
  (void)function, (void)argument;
  return 0; /* what the checker found in damaged programs is no failure of this one */
}
#endif

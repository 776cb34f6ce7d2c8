/* run_apart.h: a program's run in a process of its own, for the tests that draw programs at random. */
#ifndef TESTS_RUN_APART_H
#define TESTS_RUN_APART_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs it in a separate process. Returns its exit code, and in `reports` what it wrote to stderr, as
 * far as that fits. */
static int run_apart(int (*run)(const void *argument), const void *argument, char *reports,
                     size_t capacity) {
  int ends[2], status = 0;
  fflush(stdout);
  if (pipe(ends)) abort();
  pid_t child = fork();
  if (child < 0) abort();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    exit(run(argument));
  }
  close(ends[1]);
  size_t used = 0;
  for (ssize_t got; (got = read(ends[0], reports + used, capacity - 1 - used)) > 0;)
    used += (size_t)got;
  close(ends[0]);
  reports[used] = '\0';
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#endif

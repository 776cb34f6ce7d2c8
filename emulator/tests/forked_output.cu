/* forked_output.cu: a process forks while another of its threads prints what a kernel has written.
 *
 * Standard output is a pipe that nobody reads, so that thread stops in the middle of the text. The
 * pipe is read as soon as the main thread is about to fork. The child must be able to end, and the
 * text must come once. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

static const int LINES = 1 << 14, LINE_BYTES = 12; /* more than a pipe holds */
static std::atomic<bool> about_to_fork;

__global__ void write_lines(void) {
  for (int i = threadIdx.x; i < LINES; i += blockDim.x) printf("line %06d\n", i);
}

/* Returns the number of bytes that came until all writers had closed the pipe. */
static size_t read_all(int from) {
  static char text[1 << 16];
  while (!about_to_fork) std::this_thread::yield();
  usleep(100000); /* the fork has begun; if not, this test sees nothing, and passes */
  size_t bytes = 0;
  for (ssize_t got; (got = read(from, text, sizeof text)) > 0;) bytes += got;
  return bytes;
}

static void wait_until_full(int pipe_end) {
  int before = -1, now = 0;
  while (now == 0 || now != before) {
    before = now;
    usleep(20000);
    ioctl(pipe_end, FIONREAD, &now);
  }
}

int main(void) {
  int ends[2], status = -1;
  size_t bytes = 0;
  if (pipe(ends) || dup2(ends[1], STDOUT_FILENO) < 0) return 2;
  close(ends[1]);
  write_lines<<<1, 32>>>();
  std::thread reader([&] { bytes = read_all(ends[0]); });
  std::thread printer([] { cudaDeviceSynchronize(); });
  wait_until_full(ends[0]);
  about_to_fork = true;
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    exit(0); /* with the handlers of exit, which print what waits */
  }
  waitpid(child, &status, 0);
  printer.join();
  fclose(stdout);
  reader.join();
  fprintf(stderr, "the child %s, the text has %zu of %d bytes\n",
          WIFEXITED(status) ? "has ended" : "hangs", bytes, LINES * LINE_BYTES);
  return 0;
}

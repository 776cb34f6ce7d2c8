/* host_traps.c: SIGSEGV for accesses to protected pages, SIGTRAP after one instruction, SIGSYS for
 * system calls. The three handlers are installed only while pages are protected, and the program's
 * own come back before it could notice: whatever is not understood here opens the pages, restores
 * the handlers and is then repeated. */
#include "runtime/host_traps.h"

#if defined(__x86_64__)

#include <errno.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

/* Of prctl, since Linux 5.11. */
enum { SET_SYSCALL_USER_DISPATCH = 59, DISPATCH_OFF = 0, DISPATCH_ON = 1 };
enum { SYSCALL_ALLOW = 0, SYSCALL_BLOCK = 1 };
enum { TRAP_FLAG = 0x100, WRITE_FAULT = 2, SYSCALL_BYTES = 2, STEPPING_MOST = 8 };

/* As the kernel defines it: the C library's sigaction brings a return path of its own, whose system
 * call would be dispatched as well. */
typedef struct {
  void *handler;
  unsigned long flags;
  void (*restorer)(void);
  unsigned long mask;
} KernelAction;
enum { WITH_RESTORER = 0x04000000, MASK_BYTES = 8 };

/* The one place whose system calls are never dispatched. */
enum { RETURN_BYTES = 32 };
__attribute__((naked)) static void return_from_signal(void) {
  __asm__(
      "mov $15, %eax\n" /* rt_sigreturn */
      "syscall\n"
      ".skip 32, 0x90\n"); /* nothing else in these RETURN_BYTES */
}

static const int SIGNALS[] = {SIGSEGV, SIGSYS, SIGTRAP};
enum { SIGNAL_COUNT = 3, TRAP = 2 };
static KernelAction before[SIGNAL_COUNT];
static volatile bool active;
static volatile char selector;
static uint64_t stepping[STEPPING_MOST];
static volatile int stepping_count;
/* A signal of the program has come between a fault and its single step: the step is still to come,
 * and SIGTRAP stays ours until then. */
static volatile bool step_to_come;
static uint64_t text_first, text_end; /* the program's code */

static void set_action(int signal, const KernelAction *action, KernelAction *old) {
  syscall(SYS_rt_sigaction, signal, action, old, MASK_BYTES);
}

void host_traps_end(void) {
  if (!active) return;
  selector = SYSCALL_ALLOW;
  prctl(SET_SYSCALL_USER_DISPATCH, DISPATCH_OFF, 0, 0, 0);
  step_to_come = step_to_come || stepping_count > 0;
  for (int i = 0; i < SIGNAL_COUNT; i++)
    if (i != TRAP || !step_to_come) set_action(SIGNALS[i], &before[i], NULL);
  stepping_count = 0;
  active = false;
}

static void give_up(void) {
  host_traps_end();
  host_watch_unprotect();
}

/* ---- Faults ---- */

/* How far words may be read from here: a page further on the main stack, which begins below AT_RANDOM's
 * bytes and has nothing else near; to the end of the page on another one. */
static uint64_t end_of_stack(uint64_t stack) {
  enum { STACK_PAGE = 4096, NEAR = 64 << 20 };
  uint64_t top = getauxval(AT_RANDOM) & ~7ull;
  if (stack >= top || top - stack > NEAR) return (stack | (STACK_PAGE - 1)) - 7;
  return top - stack < STACK_PAGE ? top : stack + STACK_PAGE;
}

/* The place in the program's code: of the access, or of the call of a library function that made
 * it. The stack is read as plain words, whatever AddressSanitizer says of the variables there. */
__attribute__((no_sanitize("address", "undefined"))) static uint64_t place_of(
    const ucontext_t *context) {
  uint64_t place = (uint64_t)context->uc_mcontext.gregs[REG_RIP];
  uint64_t stack = (uint64_t)context->uc_mcontext.gregs[REG_RSP];
  if (place >= text_first && place < text_end) return place;
  for (uint64_t at = stack & ~7ull, end = end_of_stack(stack); at < end; at += 8) {
    uint64_t value = *(const uint64_t *)(uintptr_t)at;
    if (value > text_first && value < text_end) return value - 1; /* in the call, not behind it */
  }
  return place;
}

static void on_fault(const siginfo_t *info, ucontext_t *context) {
  uint64_t address = (uint64_t)(uintptr_t)info->si_addr;
  bool writes = context->uc_mcontext.gregs[REG_ERR] & WRITE_FAULT;
  /* Not active: a signal of the program came first, and ended all this. */
  if (!active || info->si_code != SEGV_ACCERR || !host_watch_covers(address, 1) ||
      stepping_count == STEPPING_MOST) {
    give_up(); /* the fault is the program's own: it happens again, without us */
    if (info->si_code <= 0) raise(SIGSEGV);
    return;
  }
  host_watch_access(address, writes, place_of(context));
  if (!host_watch_step(address)) return;
  stepping[stepping_count++] = address;
  context->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
}

static void on_step(ucontext_t *context) {
  if (step_to_come) {
    step_to_come = false;
    context->uc_mcontext.gregs[REG_EFL] &= ~(long long)TRAP_FLAG;
    if (!active) set_action(SIGTRAP, &before[TRAP], NULL);
    return;
  }
  if (stepping_count == 0) {
    give_up();
    raise(SIGTRAP);
    return;
  }
  for (int i = 0; i < stepping_count; i++) host_watch_stepped(stepping[i]);
  stepping_count = 0;
  context->uc_mcontext.gregs[REG_EFL] &= ~(long long)TRAP_FLAG;
}

/* ---- System calls ---- */

static long long system_call(const ucontext_t *context) {
  const greg_t *registers = context->uc_mcontext.gregs;
  long long result;
  register long long r10 __asm__("r10") = registers[REG_R10];
  register long long r8 __asm__("r8") = registers[REG_R8];
  register long long r9 __asm__("r9") = registers[REG_R9];
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(registers[REG_RAX]), "D"(registers[REG_RDI]), "S"(registers[REG_RSI]),
                     "d"(registers[REG_RDX]), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}

/* Those that have nothing to do with signals, threads or processes, and read or write only the
 * buffers given here, first or second. */
static bool is_harmless(const ucontext_t *context, int number) {
  const greg_t *registers = context->uc_mcontext.gregs;
  uint64_t first = (uint64_t)registers[REG_RDI], second = (uint64_t)registers[REG_RSI];
  uint64_t third = (uint64_t)registers[REG_RDX];
  switch (number) {
    case SYS_brk:
    case SYS_sched_yield:
    case SYS_getpid:
    case SYS_gettid:
    case SYS_lseek:
    case SYS_close:
      return true;
    case SYS_mmap:
      return first == 0;
    case SYS_munmap:
    case SYS_madvise:
      return !host_watch_covers(first, second);
    case SYS_futex:
      return !host_watch_covers(first, 8) && !host_watch_covers((uint64_t)registers[REG_R10], 16);
    case SYS_read:
    case SYS_write:
      return !host_watch_covers(second, third);
    default:
      return false;
  }
}

static void note_buffer(const ucontext_t *context, int number) {
  const greg_t *registers = context->uc_mcontext.gregs;
  uint64_t first = (uint64_t)registers[REG_RSI], bytes = (uint64_t)registers[REG_RDX];
  bool reads = number == SYS_write || number == SYS_pwrite64;
  bool writes = number == SYS_read || number == SYS_pread64;
  if ((!reads && !writes) || bytes > 1 << 20) return;
  for (uint64_t i = 0; i < bytes; i++)
    if (host_watch_covers(first + i, 1)) host_watch_access(first + i, writes, place_of(context));
}

static void on_system_call(const siginfo_t *info, ucontext_t *context) {
  enum { USER_DISPATCH = 2 };
  if (info->si_code != USER_DISPATCH) {
    give_up();
    raise(SIGSYS);
    return;
  }
  context->uc_mcontext.gregs[REG_RAX] = info->si_syscall;
  if (is_harmless(context, info->si_syscall)) {
    context->uc_mcontext.gregs[REG_RAX] = system_call(context);
    return;
  }
  note_buffer(context, info->si_syscall);
  give_up();
  context->uc_mcontext.gregs[REG_RIP] -= SYSCALL_BYTES; /* once more, without us */
}

/* ---- All of them ---- */

static void on_signal(int signal, siginfo_t *info, void *context) {
  int error = errno;
  char selected = selector;
  selector = SYSCALL_ALLOW;
  if (signal == SIGSEGV) on_fault(info, context);
  if (signal == SIGTRAP) on_step(context);
  if (signal == SIGSYS) on_system_call(info, context);
  errno = error;
  if (active) selector = selected;
}

static int find_text(struct dl_phdr_info *program, size_t bytes, void *unused) {
  (void)bytes, (void)unused;
  for (int i = 0; i < program->dlpi_phnum; i++) {
    const ElfW(Phdr) *each = &program->dlpi_phdr[i];
    if (each->p_type != PT_LOAD || !(each->p_flags & PF_X)) continue;
    text_first = program->dlpi_addr + each->p_vaddr;
    text_end = text_first + each->p_memsz;
  }
  return 1; /* the program itself comes first */
}

/* A debugger stops at every SIGSEGV, and takes SIGTRAP for its own. */
static bool is_traced(void) {
  char line[128];
  int tracer = 0;
  FILE *status = fopen("/proc/self/status", "r");
  while (status && fgets(line, sizeof line, status))
    if (sscanf(line, "TracerPid: %d", &tracer) == 1) break;
  if (status) fclose(status);
  return tracer != 0;
}

/* Could one of the three come while it is blocked, in this thread or in a handler of the program? The
 * kernel would end the program. Without a system call, which would end all this, neither changes. */
static bool are_blocked(void) {
  enum { LAST_SIGNAL = 64 };
  unsigned long ours = 0, blocked = 0;
  for (int i = 0; i < SIGNAL_COUNT; i++) ours |= 1ul << (SIGNALS[i] - 1);
  syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &blocked, MASK_BYTES);
  for (int signal = 1; signal <= LAST_SIGNAL && !(blocked & ours); signal++) {
    KernelAction action = {.handler = NULL};
    if (ours >> (signal - 1) & 1) continue;
    if (syscall(SYS_rt_sigaction, signal, NULL, &action, MASK_BYTES) != 0) continue;
    if (action.handler != (void *)SIG_DFL && action.handler != (void *)SIG_IGN)
      blocked |= action.mask;
  }
  return blocked & ours;
}

bool host_traps_begin(void) {
  static bool impossible;
  if (impossible) return false;
  if (!text_end) {
    dl_iterate_phdr(find_text, NULL);
    impossible = is_traced();
    if (impossible) return false;
  }
  if (are_blocked()) return false;
  const KernelAction action = {(void *)on_signal, SA_SIGINFO | SA_NODEFER | WITH_RESTORER,
                               return_from_signal, 0};
  for (int i = 0; i < SIGNAL_COUNT; i++)
    set_action(SIGNALS[i], &action, i == TRAP && step_to_come ? NULL : &before[i]);
  active = true;
  selector = SYSCALL_ALLOW;
  if (prctl(SET_SYSCALL_USER_DISPATCH, DISPATCH_ON, (uintptr_t)return_from_signal,
            (uintptr_t)RETURN_BYTES, &selector) != 0) {
    impossible = true;
    host_traps_end();
    return false;
  }
  selector = SYSCALL_BLOCK;
  return true;
}

#else

bool host_traps_begin(void) { return false; }
void host_traps_end(void) {}

#endif

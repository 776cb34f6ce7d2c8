#!/usr/bin/env python3
"""in_terminal.py SECONDS COLUMNS COMMAND...: runs the command in a terminal of that width at which nobody types, and
prints what it shows. Exit code: the command's, or 124 where it did not end within the seconds and was killed."""
import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time


def show(terminal, process, end):
    """Until the last process has closed the terminal; true if that came before `end`."""
    while time.monotonic() < end:
        if not select.select([terminal], [], [], 0.2)[0]:
            if os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                return True
            continue
        try:
            output = os.read(terminal, 65536)
        except OSError:  # how Linux says that nobody has the terminal open
            return True
        if not output:
            return True
        sys.stdout.buffer.write(output)
    return False


def main():
    seconds, columns, command = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    process, terminal = pty.fork()
    if process == 0:
        time.sleep(0.1)  # until the width is set
        os.execvp(command[0], command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    in_time = show(terminal, process, time.monotonic() + seconds)
    sys.stdout.flush()
    if not in_time:
        os.killpg(process, signal.SIGKILL)  # it leads a session of its own
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    if not in_time:
        print(f"\nin_terminal.py: {' '.join(command)} did not end within {seconds} s")
        return 124
    return code if code >= 0 else 128 - code


sys.exit(main())

// SPDX-License-Identifier: Apache-2.0
// Runs a program and kills it right before its N-th call that changes a file system, counted over
// all its threads. Dying before a call that changes nothing is the same as dying before the next
// one that does.
//
//   kill_at_call N PROGRAM [ARGUMENT]...    N = 0: only count, and print the number
//
// Exit code: the program's own; 128 + 9 when it was killed; 77 when tracing is not permitted.
#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace {

constexpr int exit_skipped = 77;

bool changes_a_file(const __ptrace_syscall_info& call) {
  const auto descriptor = static_cast<int>(call.entry.args[0]);
  switch (call.entry.nr) {
    case SYS_write:
    case SYS_writev: return descriptor > 2;
    case SYS_open:
    case SYS_openat: {
      const auto flags = static_cast<int>(call.entry.args[call.entry.nr == SYS_open ? 1 : 2]);
      return (flags & (O_CREAT | O_TRUNC)) != 0;
    }
    case SYS_creat:
    case SYS_pwrite64:
    case SYS_pwritev:
    case SYS_pwritev2:
    case SYS_fsync:
    case SYS_fdatasync:
    case SYS_sync_file_range:
    case SYS_ftruncate:
    case SYS_truncate:
    case SYS_fallocate:
    case SYS_rename:
    case SYS_renameat:
    case SYS_renameat2:
    case SYS_unlink:
    case SYS_unlinkat:
    case SYS_rmdir:
    case SYS_mkdir:
    case SYS_mkdirat:
    case SYS_link:
    case SYS_linkat:
    case SYS_symlink:
    case SYS_flock: return true;
    default: return false;
  }
}

long trace(__ptrace_request request, pid_t pid, long address, void* data) {
  return ::ptrace(request, pid, address, data);
}

void child(char** command) {
  if (trace(PTRACE_TRACEME, 0, 0, nullptr) != 0) ::_exit(exit_skipped);
  ::raise(SIGSTOP);
  ::execv(command[0], command);
  std::perror(command[0]);
  ::_exit(127);
}

// Lets everything run, one call at a time, until the end or the N-th change.
int watch(pid_t root, long kill_at) {
  long count = 0;
  int code = 1;
  while (true) {
    int status = 0;
    const pid_t pid = ::waitpid(-1, &status, __WALL);
    if (pid < 0) break;  // nobody is left
    if (WIFEXITED(status) || WIFSIGNALED(status)) {
      if (pid == root) code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      continue;
    }
    long deliver = 0;
    const int signal = WSTOPSIG(status);
    if (signal == (SIGTRAP | 0x80)) {
      __ptrace_syscall_info call{};
      trace(PTRACE_GET_SYSCALL_INFO, pid, sizeof call, &call);
      if (call.op == PTRACE_SYSCALL_INFO_ENTRY && changes_a_file(call) && ++count == kill_at) {
        ::kill(root, SIGKILL);
        continue;
      }
    } else if (signal != SIGTRAP && signal != SIGSTOP) {
      deliver = signal;
    }
    trace(PTRACE_SYSCALL, pid, 0, reinterpret_cast<void*>(deliver));
  }
  if (kill_at == 0) std::printf("%ld\n", count);
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return std::fprintf(stderr, "usage: %s N PROGRAM [ARGUMENT]...\n", argv[0]), 2;
  const pid_t pid = ::fork();
  if (pid == 0) child(argv + 2);
  int status = 0;
  ::waitpid(pid, &status, 0);
  if (!WIFSTOPPED(status)) return exit_skipped;
  const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
                       PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
  if (trace(PTRACE_SETOPTIONS, pid, 0, reinterpret_cast<void*>(options)) != 0) {
    ::kill(pid, SIGKILL);
    return exit_skipped;
  }
  trace(PTRACE_SYSCALL, pid, 0, nullptr);
  return watch(pid, std::strtol(argv[1], nullptr, 10));
}

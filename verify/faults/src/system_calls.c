/* System calls, for the same rules. ombx makes the calls of sockets without the C library, where no library can intercept them.
 * In ranks over sockets and receivers of a pipeline, a filter of the kernel (seccomp) therefore turns recvfrom and recvmsg into a
 * signal. Its handler makes the call and changes what arrived. To rules the calls are `recvfrom` and `recvmsg`; their bytes are those
 * of the (last) buffer, and calls that deliver nothing do not count. Knows flip and stale. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>

/* Sixth argument of the handler's own calls. recvmsg has none, and recvfrom does not read it without an address. */
#define OWN 0x6f6d6278

#if defined(__x86_64__)
#define ARGUMENT(context, n) ((context)->uc_mcontext.gregs[(int[]){REG_RDI, REG_RSI, REG_RDX, REG_R10}[n]])
#define RESULT(context) ((context)->uc_mcontext.gregs[REG_RAX])
#elif defined(__aarch64__)
#define ARGUMENT(context, n) ((context)->uc_mcontext.regs[n])
#define RESULT(context) ((context)->uc_mcontext.regs[0])
#endif

/* Bytes of the header of a datagram at a rate. */
#define HEADER 24

/* Changes datagrams at a rate, which arrive one after the other in one buffer: of the size of a rule. */
static void change_packed(unsigned char *at, long arrived) {
    for (int i = 0; i < rule_count; i++) {
        long length = HEADER + rules[i].bytes;
        if (rules[i].bytes <= 0 || arrived % length != 0) continue;
        for (unsigned char *end = at + arrived; at < end; at += length) {
            const struct rule *rule = flipped("recvmsg", length - HEADER, 0);
            if (rule != NULL && rule->byte < length - HEADER) flip(at + HEADER + rule->byte);
        }
        return;
    }
}

/* Makes a call and changes what it delivers. */
static long receive(long number, long file, long at, long length, long flags) {
    struct iovec whole = {(void *)at, (size_t)length}, *part = &whole;
    long before = 0; /* bytes of the buffer before the message */
    if (number == SYS_recvmsg) {
        const struct msghdr *message = (const void *)at;
        if (message->msg_iovlen == 0) return syscall(number, file, at, length, flags, 0, OWN);
        part = message->msg_iov;
        if (message->msg_iovlen == 1) {
            long arrived = syscall(number, file, at, length, flags, 0, OWN);
            change_packed(part->iov_base, arrived);
            return arrived;
        }
        /* A header comes before the message, and perhaps other datagrams after it. */
        if (message->msg_iovlen > 1) before = (long)part++->iov_len;
    }
    static __thread unsigned char old[1 << 16];
    size_t kept = part->iov_len < sizeof old ? part->iov_len : sizeof old;
    if (part->iov_base != NULL) memcpy(old, part->iov_base, kept);
    long result = syscall(number, file, at, length, flags, 0, OWN);
    if (result <= before) return result;
    const char *call = number == SYS_recvmsg ? "recvmsg" : "recvfrom";
    const struct rule *rule = flipped(call, (long)part->iov_len, 0);
    if (rule != NULL && rule->byte < result - before && rule->byte < (long)part->iov_len) flip((unsigned char *)part->iov_base + rule->byte);
    if (does("stale", call, (long)part->iov_len)) {
        memcpy(part->iov_base, old, kept < (size_t)(result - before) ? kept : (size_t)(result - before));
    }
    return result;
}

static void on_call(int signal, siginfo_t *info, void *context) {
    (void)signal;
    int saved = errno;
    ucontext_t *at = context;
    long result = receive(info->si_syscall, ARGUMENT(at, 0), ARGUMENT(at, 1), ARGUMENT(at, 2), ARGUMENT(at, 3));
    RESULT(at) = result < 0 ? -errno : result;
    errno = saved;
}

/* Returns whether this process receives data over sockets and starts no other, which would inherit the filter. */
static int receives(int count, char **arguments) {
    if (count > 1 && strcmp(arguments[1], "worker") == 0) return 1;
    return count > 2 && strcmp(arguments[1], "pipeline-process") == 0 && strncmp(arguments[2], "receiver", 8) == 0;
}

__attribute__((constructor)) static void filter_calls(int count, char **arguments) {
    if (getenv("OMBX_FAULTS") == NULL || !receives(count, arguments)) return;
#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define IS(value, then, otherwise) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, then, otherwise)
    struct sock_filter steps[] = {
        LOAD(nr),
        IS(SYS_recvmsg, 3, 0),
        IS(SYS_recvfrom, 0, 5),
        LOAD(args[4]),
        IS(0, 0, 3),
        LOAD(args[5]),
        IS(OWN, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof steps / sizeof *steps, steps};
    struct sigaction action = {.sa_sigaction = on_call, .sa_flags = SA_SIGINFO | SA_RESTART};
    if (sigaction(SIGSYS, &action, NULL) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        perror("interpose: no filter of system calls");
        abort();
    }
}

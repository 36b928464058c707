"""Ways out by system calls that no shell makes: `calls.py NAME` takes one, and ends with success if it got out.

`lay` and `lift` are for the test, outside: they put there what some of the ways are after, and take it away.
"""

import ctypes
import fcntl
import os
import platform
import resource
import socket
import struct
import sys
import termios

libc = ctypes.CDLL(None, use_errno=True)

# The numbers of linux/x86 (syscall_64.tbl) and of all newer processors (asm-generic/unistd.h).
NUMBERS = {
    "x86_64": dict(
        ptrace=101, shmget=29, shmat=30, shmctl=31, msgget=68, msgsnd=69, msgctl=71, init_module=175,
        mq_open=240, mq_unlink=241, add_key=248, keyctl=250, ioprio_set=251, unshare=272, perf_event_open=298,
        fanotify_init=300, name_to_handle_at=303, open_by_handle_at=304, setns=308, process_vm_readv=310,
        process_vm_writev=311, bpf=321, userfaultfd=323,
    ),
    "aarch64": dict(
        ptrace=117, shmget=194, shmat=196, shmctl=195, msgget=186, msgsnd=189, msgctl=187, init_module=105,
        mq_open=180, mq_unlink=181, add_key=217, keyctl=219, ioprio_set=30, unshare=97, perf_event_open=241,
        fanotify_init=262, name_to_handle_at=264, open_by_handle_at=265, setns=268, process_vm_readv=270,
        process_vm_writev=271, bpf=280, userfaultfd=282,
    ),
}[platform.machine()]
NUMBERS |= dict(pidfd_send_signal=424, io_uring_setup=425, io_uring_enter=426, open_tree=428, fsopen=430, pidfd_open=434,
                pidfd_getfd=438)

NEW_MOUNTS, NEW_GROUPS, NEW_USER = 0x00020000, 0x02000000, 0x10000000
KEY = int(os.environ.get("ipc", "0"))
LOOP = int(os.environ.get("loop", "0"))


def call(name, *arguments):
    """The call of that name; an error of the system is raised."""
    arguments = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    result = libc.syscall(ctypes.c_long(NUMBERS[name]), *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}")
    return result


def mount(source, at, kind, flags=0, data=None):
    if libc.mount(source, at, kind, flags, data) != 0:
        raise OSError(ctypes.get_errno(), f"mount: {os.strerror(ctypes.get_errno())}")


def ring():
    """Opens a file outside by a ring, which no filter of calls sees."""
    parameters = ctypes.create_string_buffer(120)
    ring = call("io_uring_setup", 4, parameters)
    words = struct.unpack("<30I", parameters.raw)
    entries, completions = words[0], words[1]
    head, tail, mask, _, _, _, array = words[10:17]
    results = words[25]
    import mmap

    size = array + entries * 4 + results + completions * 16
    queue = mmap.mmap(ring, size, offset=0)
    entry = mmap.mmap(ring, entries * 64, offset=0x10000000)
    path = ctypes.create_string_buffer((os.environ["outside"] + "/by-ring").encode())
    openat, here, write_and_make = 18, -100, os.O_WRONLY | os.O_CREAT
    entry[:64] = struct.pack("<BBHiQQIIQ24x", openat, 0, 0, here, 0, ctypes.addressof(path), 0o644, write_and_make, 1)
    queue[array : array + 4] = struct.pack("<I", 0)
    queue[tail : tail + 4] = struct.pack("<I", 1)
    call("io_uring_enter", ring, 1, 1, 1, None, 0)
    done = mmap.mmap(ring, results + completions * 16, offset=0x8000000)
    _, result, _ = struct.unpack("<QiI", done[results : results + 16])
    if result < 0:
        raise OSError(-result, f"ring: {os.strerror(-result)}")


def trace():
    seize = 0x4206
    call("ptrace", seize, LOOP, 0, 0)


def memory(name):
    """Nothing is at that address: who may look gets another error."""
    own = ctypes.create_string_buffer(1)
    ours = ctypes.create_string_buffer(struct.pack("QQ", ctypes.addressof(own), 1))
    theirs = ctypes.create_string_buffer(struct.pack("QQ", 4096, 1))
    try:
        call(name, LOOP, ours, 1, theirs, 1, 0)
    except OSError as error:
        if error.errno != 14:
            raise


def shared_memory():
    at = call("shmget", KEY, 0, 0)
    libc.shmat.restype = ctypes.c_void_p
    if libc.shmat(at, None, 0) == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), "shmat")


def message():
    queue = call("msgget", KEY, 0)
    call("msgsnd", queue, ctypes.create_string_buffer(struct.pack("l1s", 1, b"x")), 1, 0o4000)


def control_groups():
    """Mounts the machine's groups anew, where the loop's can be written."""
    call("unshare", NEW_USER | NEW_MOUNTS | NEW_GROUPS)
    at = os.environ.get("TMPDIR", "/tmp") + "/groups"
    os.makedirs(at, exist_ok=True)
    mount(b"none", at.encode(), b"cgroup2")
    open(at + "/cgroup.procs", "w").close()


def past_the_covers(copy):
    """Reads what is hidden in a copy of the folder without what is mounted in it."""
    call("unshare", NEW_USER | NEW_MOUNTS)
    home, at = os.environ["home"], os.environ.get("TMPDIR", "/tmp") + "/copy"
    for folder in ("", "/upper", "/work", "/all"):
        os.makedirs(at + folder, exist_ok=True)
    with open(copy(home, at) + "/.netrc") as file:
        if "secret" not in file.read():
            raise OSError(13, "nothing is in it")


def by_layers(home, at):
    mount(b"overlay", (at + "/all").encode(), b"overlay", 0, f"lowerdir={home}:{at}/work".encode())
    return at + "/all"


def by_bind(home, at):
    mount(home.encode(), (at + "/all").encode(), None, 4096)
    return at + "/all"


def by_tree(home, _):
    clone = 1
    return f"/proc/self/fd/{call('open_tree', -100, home.encode(), clone)}"


def by_handle():
    """Opens the folder of secrets by its number on the disk."""
    call("unshare", NEW_USER | NEW_MOUNTS)
    handle = ctypes.create_string_buffer(struct.pack("Ii128x", 128, 0))
    number = ctypes.c_int()
    call("name_to_handle_at", -100, os.environ["home"].encode(), handle, ctypes.byref(number), 0)
    call("open_by_handle_at", os.open(os.environ["home"], os.O_RDONLY), handle, os.O_RDONLY)


def type_into_the_terminal():
    for where in (0, 1, 2):
        try:
            fcntl.ioctl(where, termios.TIOCSTI, b"x")
            return
        except OSError:
            pass
    fcntl.ioctl(os.open("/dev/tty", os.O_RDWR), termios.TIOCSTI, b"x")


def perf():
    """Only of this process: where that is let to everybody, so may the machine be."""
    software, without_kernel = 1, 1 << 5
    attributes = struct.pack("IIQQQQQ", software, 120, 0, 0, 0, 0, without_kernel) + bytes(80)
    call("perf_event_open", ctypes.create_string_buffer(attributes), 0, -1, -1, 0)


def priorities():
    """Of all programs of a user: of one who has none here, so that a test changes nothing."""
    try:
        os.setpriority(os.PRIO_USER, 54321, 0)
    except ProcessLookupError:
        pass


WAYS = {
    "ring": ring,
    "trace": trace,
    "read_memory": lambda: memory("process_vm_readv"),
    "write_memory": lambda: memory("process_vm_writev"),
    "take_file": lambda: call("pidfd_getfd", call("pidfd_open", LOOP, 0), 1, 0),
    "signal": lambda: call("pidfd_send_signal", call("pidfd_open", LOOP, 0), 0, None, 0),
    "enter": lambda: call("setns", call("pidfd_open", LOOP, 0), NEW_MOUNTS),
    "limit": lambda: resource.prlimit(LOOP, resource.RLIMIT_CORE, resource.prlimit(LOOP, resource.RLIMIT_CORE)),
    "priority": lambda: os.setpriority(os.PRIO_PROCESS, LOOP, os.getpriority(os.PRIO_PROCESS, LOOP)),
    "priorities": priorities,
    "disk_priority": lambda: call("ioprio_set", 1, LOOP, 2 << 13 | 7),
    "groups": control_groups,
    "add_key": lambda: call("add_key", b"user", b"ralphloop-bait", b"x", 1, -4),
    "keys": lambda: call("keyctl", 0, -3, 1),
    "perf": perf,
    "bpf": lambda: call("bpf", 0, ctypes.create_string_buffer(struct.pack("IIII", 1, 4, 4, 1) + bytes(100)), 116),
    "faults": lambda: call("userfaultfd", 1),
    "host": lambda: socket.socket(40, socket.SOCK_STREAM),
    "packets": lambda: socket.socket(17, socket.SOCK_RAW),
    "watch": lambda: call("fanotify_init", 0, 0),
    "module": lambda: call("init_module", ctypes.create_string_buffer(8), 8, b""),
    "layers": lambda: past_the_covers(by_layers),
    "bind": lambda: past_the_covers(by_bind),
    "tree": lambda: past_the_covers(by_tree),
    "handle": by_handle,
    "terminal": type_into_the_terminal,
    "shared_memory": shared_memory,
    "message": message,
    "message_queue": lambda: call("mq_open", f"bait-{KEY}".encode(), os.O_RDWR, 0, None),
}


def lay():
    call("shmget", KEY, 4096, 0o1666)
    call("msgget", KEY, 0o1666)
    os.umask(0)
    call("mq_open", f"bait-{KEY}".encode(), os.O_RDWR | os.O_CREAT, 0o666, None)
    open(f"/dev/shm/bait-{KEY}", "w").close()


def lift():
    remove = 0
    call("shmctl", call("shmget", KEY, 0, 0), remove, None)
    call("msgctl", call("msgget", KEY, 0), remove, None)
    call("mq_unlink", f"bait-{KEY}".encode())
    os.remove(f"/dev/shm/bait-{KEY}")


if __name__ == "__main__":
    try:
        {"lay": lay, "lift": lift, **WAYS}[sys.argv[1]]()
    except OSError as error:
        sys.exit(str(error))

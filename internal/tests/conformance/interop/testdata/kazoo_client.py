"""kazoo's part in a contest: python3 kazoo_client.py host:port path directory leases seconds

Each line of standard input lets one client take the lock at the path: its name, the kind of
lock, and how many times. Each client has a session, a thread and a lock object of its own. At
the end of the input the program waits for all of them and ends, with 1 if any failed. It ends
in any case after so many seconds. A lock whose kind ends with "-soon" is asked for with a timeout.

What happens is written to the directory, outside of ZooKeeper: see journal_test.go.
"""
import os
import queue
import sys
import threading
import time
import traceback

from kazoo.client import KazooClient
from kazoo.exceptions import LockTimeout

# The classes on the page docs/interop.md, as they stand there.
from curator_locks import CuratorLock, CuratorReadLock, CuratorSemaphore, CuratorWriteLock

server, path, directory, leases, seconds = sys.argv[1:]
failed = []

# For how many seconds a kind that ends with "-soon" waits for the lock.
SOON = 10

KINDS = {
    "mutex": ("exclusive", lambda c: CuratorLock(c, path)),
    "write": ("exclusive", lambda c: CuratorWriteLock(c, path)),
    "read": ("shared", lambda c: CuratorReadLock(c, path)),
    "semaphore": ("shared", lambda c: CuratorSemaphore(c, path, max_leases=int(leases))),
    "mutex-too": ("exclusive", lambda c: CuratorLock(c, path, extra_lock_patterns=["__lock__"])),
    # As kazoo has them, and told of others' nodes.
    "kazoo-mutex": ("exclusive", lambda c: c.Lock(path, extra_lock_patterns=["-lock-"])),
    "kazoo-write": ("exclusive", lambda c: c.WriteLock(path, extra_lock_patterns=["__READ__", "__WRIT__"])),
    "kazoo-read": ("shared", lambda c: c.ReadLock(path, extra_lock_patterns=["__WRIT__"])),
    "kazoo-semaphore": ("shared", lambda c: c.Semaphore(path, max_leases=int(leases))),
    # As kazoo has it, and told of nothing.
    "kazoo-alone": ("exclusive", lambda c: c.Lock(path)),
}


def end_after(limit):
    def end():
        time.sleep(limit)
        print("not done after %ds" % limit, file=sys.stderr, flush=True)
        os._exit(3)

    threading.Thread(target=end, daemon=True).start()


def name(file):
    return os.path.join(directory, file)


def append(line):
    log = os.open(name("log"), os.O_WRONLY | os.O_APPEND)
    try:
        os.write(log, line.encode())
    finally:
        os.close(log)


def take(client, lock, mode, timeout):
    if not lock.acquire(timeout=timeout):
        raise LockTimeout("not within %s s" % timeout)
    try:
        append("enter %s %s\n" % (client, mode))
        while not os.path.exists(name("gate")):
            time.sleep(0.005)
        append("leave %s %s\n" % (client, mode))
    finally:
        lock.release()


def play(client, orders):
    """Takes locks as ordered, until there is no order but None."""
    connection = KazooClient(hosts=server, timeout=20)
    try:
        connection.start(timeout=20)
        locks = {}
        for kind, times in iter(orders.get, None):
            mode, make = KINDS[kind.replace("-soon", "")]
            timeout = SOON if kind.endswith("-soon") else None
            if kind not in locks:
                locks[kind] = make(connection)
            for _ in range(times):
                take(client, locks[kind], mode, timeout)
    except Exception:
        failed.append(client)
        print(client, traceback.format_exc(), file=sys.stderr, flush=True)
    finally:
        connection.stop()
        connection.close()


end_after(int(seconds))
clients = {}
for line in sys.stdin:
    client, kind, times = line.split()
    if client not in clients:
        orders = queue.Queue()
        thread = threading.Thread(target=play, args=(client, orders), daemon=True)
        clients[client] = (thread, orders)
        thread.start()
    clients[client][1].put((kind, int(times)))
for thread, orders in clients.values():
    orders.put(None)
for thread, orders in clients.values():
    thread.join()
sys.exit(1 if failed else 0)

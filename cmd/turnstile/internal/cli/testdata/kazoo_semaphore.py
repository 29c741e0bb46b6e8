"""Holds leases of semaphores of kazoo: kazoo_semaphore.py host:port path other. Of the first semaphore it holds both leases
and waits for a third one, of the other, whose directory must exist, it holds one of two. It prints "held", waits for a line,
releases all, and prints "released"."""
import sys
import threading

from kazoo.client import KazooClient

client = KazooClient(hosts=sys.argv[1])
client.start()
path, other = sys.argv[2:4]
held = [client.Semaphore(path, "worker-7", max_leases=2), client.Semaphore(path, "worker-8", max_leases=2),
        client.Semaphore(other, "worker-7", max_leases=2)]
for semaphore in held:
    semaphore.acquire()
third = client.Semaphore(path, "worker-9", max_leases=2)
waiter = threading.Thread(target=third.acquire)
waits = threading.Event()


def look(event=None):
    """Sets waits when there is a node at the gate."""
    if client.get_children(path + "-__lock__", watch=look):
        waits.set()


look()
waiter.start()
waits.wait()
print("held", flush=True)
sys.stdin.readline()
for semaphore in held:
    semaphore.release()
waiter.join()
third.release()
print("released", flush=True)
client.stop()

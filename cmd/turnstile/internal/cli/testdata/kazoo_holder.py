"""Holds a mutex of kazoo: kazoo_holder.py host:port path. It prints "held", waits for a line, releases
the mutex, and prints "released"."""
import sys

from kazoo.client import KazooClient

client = KazooClient(hosts=sys.argv[1])
client.start()
lock = client.Lock(sys.argv[2], "worker-7")
lock.acquire()
print("held", flush=True)
sys.stdin.readline()
lock.release()
print("released", flush=True)
client.stop()

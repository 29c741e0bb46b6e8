"""kazoo's teams; see team.go for what each command does, and remote.go for how commands and
answers look."""
import gc
import queue
import sys
import threading
import time
import traceback

import kazoo.version
from kazoo.client import KazooClient


class Recorder:
    """What the workers of one command measure."""

    def __init__(self):
        self.mu = threading.Lock()
        self.released = 0  # when the last holder began to give back; 0: never
        self.cycles = []
        self.gaps = []
        self.start = time.monotonic_ns()

    def cycle(self, take, hold):
        asked = time.monotonic_ns()
        take.acquire()
        held = time.monotonic_ns()
        with self.mu:
            if asked < self.released:
                self.gaps.append(held - self.released)
        if hold:
            time.sleep(hold)
        leaving = time.monotonic_ns()
        with self.mu:
            self.released = leaving
        take.release()
        with self.mu:
            self.cycles.append(held - asked + time.monotonic_ns() - leaving)

    def result(self):
        elapsed = time.monotonic_ns() - self.start
        return "%d ,%s ,%s" % (elapsed, ",".join(map(str, self.cycles)), ",".join(map(str, self.gaps)))


class Worker(threading.Thread):
    """A worker is a thread, with a lock that it makes when it first needs one."""

    def __init__(self, make):
        super().__init__(daemon=True)
        self.make = make
        self.made = None
        self.orders = queue.SimpleQueue()
        self.start()

    def run(self):
        for work, done in iter(self.orders.get, None):
            try:
                if self.made is None:
                    self.made = self.make()
                work(self.made)
                done.put(None)
            except Exception as e:
                done.put(e)

    def begin(self, work):
        done = queue.SimpleQueue()
        self.orders.put((work, done))
        return done


def wait(begun):
    for done in begun:
        error = done.get()
        if error is not None:
            raise error


class Team:
    def __init__(self, kind, servers, path, sessions, workers, leases, apart):
        self.clients = [KazooClient(hosts=servers, timeout=30) for _ in range(int(sessions))]
        for client in self.clients:
            client.start(timeout=30)
        self.workers = [
            Worker(self.maker(kind, i, path + "/%d" % i if apart == "true" else path, int(leases)))
            for i in range(int(workers))
        ]

    def maker(self, kind, i, path, leases):
        """A function that makes a pair of what to write with and what to read with."""
        client = self.clients[i % len(self.clients)]

        def make():
            if kind == "mutex":
                lock = client.Lock(path)
                return lock, lock
            if kind == "rw":
                return client.WriteLock(path), client.ReadLock(path)
            if kind == "semaphore":
                semaphore = client.Semaphore(path, max_leases=leases)
                return semaphore, semaphore
            raise ValueError(kind)

        return make

    def cycles(self, n, micros):
        r = Recorder()
        hold = int(micros) / 1e6

        def work(worker):
            def cycles(pair):
                for k in range(int(n)):
                    r.cycle(pair[0] if (worker + k) % 10 == 0 else pair[1], hold)

            return cycles

        wait([w.begin(work(i)) for i, w in enumerate(self.workers)])
        return r.result()

    def hold(self):
        wait([self.workers[0].begin(lambda pair: pair[0].acquire())])

    def drop(self):
        wait([self.workers[0].begin(lambda pair: pair[0].release())])

    def tries(self, n):
        r = Recorder()

        def work(pair):
            for _ in range(int(n)):
                began = time.monotonic_ns()
                if pair[0].acquire(blocking=False):
                    raise RuntimeError("got what another holds")
                r.cycles.append(time.monotonic_ns() - began)

        wait([self.workers[1].begin(work)])
        return r.result()

    def queue(self):
        self.out = Recorder()
        self.queued = [w.begin(lambda pair: self.out.cycle(pair[0], 0)) for w in self.workers[1:]]

    def drain(self):
        self.out.start = time.monotonic_ns()
        self.drop()
        wait(self.queued)
        return self.out.result()

    def holdall(self):
        wait([w.begin(lambda pair: pair[0].acquire()) for w in self.workers])

    def dropall(self):
        wait([w.begin(lambda pair: pair[0].release()) for w in self.workers])

    def memory(self):
        gc.collect()
        with open("/proc/self/status") as f:
            for line in f:
                if line.startswith("VmRSS:"):
                    return int(line.split()[1]) * 1024
        raise RuntimeError("no VmRSS")

    def close(self):
        for worker in self.workers:
            worker.orders.put(None)
        for client in self.clients:
            client.stop()
            client.close()


team = None
for line in sys.stdin:
    command, *words = line.split()
    try:
        if command == "open":
            team, answer = Team(*words), None
        elif command == "version":
            answer = kazoo.version.__version__ + " " + sys.version.split()[0]
        else:
            answer = getattr(team, {"try": "tries"}.get(command, command))(*words)
        print("ok", "" if answer is None else answer, flush=True)
    except Exception as e:
        traceback.print_exc()
        print("error", repr(e).replace("\n", " "), flush=True)

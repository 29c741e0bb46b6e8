import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMultiLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.retry.ExponentialBackoffRetry;

/**
 * Curator's teams; see team.go for what each command does, and remote.go for how commands and
 * answers look.
 */
public final class CuratorTeam {
    /** One worker's lock. */
    interface Lock {
        void acquire(boolean write) throws Exception;

        boolean tryAcquire() throws Exception;

        void release(boolean write) throws Exception;
    }

    interface Work {
        void run(int worker, Lock lock) throws Exception;
    }

    /** What the workers of one command measure. */
    static final class Recorder {
        private long released; // when the last holder began to give back; 0: never
        private final StringBuilder cycles = new StringBuilder(",");
        private final StringBuilder gaps = new StringBuilder(",");

        void cycle(Lock lock, boolean write, long holdMicros) throws Exception {
            long asked = System.nanoTime();
            lock.acquire(write);
            long held = System.nanoTime();
            synchronized (this) {
                if (released != 0 && asked - released < 0) {
                    gaps.append(held - released).append(',');
                }
            }
            if (holdMicros > 0) {
                TimeUnit.MICROSECONDS.sleep(holdMicros);
            }
            long leaving = System.nanoTime();
            synchronized (this) {
                released = leaving;
            }
            lock.release(write);
            add(held - asked + System.nanoTime() - leaving);
        }

        synchronized void add(long nanos) {
            cycles.append(nanos).append(',');
        }

        synchronized String result(long start) {
            return (System.nanoTime() - start) + " " + cycles + " " + gaps;
        }
    }

    private final String kind;
    private final String path;
    private final int leases;
    private final boolean apart;
    private final int manyLocks;
    private final int every;
    private final int turns;
    private final List<CuratorFramework> clients = new ArrayList<>();
    private final List<ExecutorService> workers = new ArrayList<>(); // an InterProcessMutex is its thread's
    private final Lock[] locks;
    private List<Future<?>> queued;
    private Recorder queue;

    private CuratorTeam(String[] words) {
        kind = words[1];
        path = words[3];
        leases = Integer.parseInt(words[6]);
        apart = Boolean.parseBoolean(words[7]);
        manyLocks = Integer.parseInt(words[8]);
        every = Integer.parseInt(words[9]);
        turns = Integer.parseInt(words[10]);
        String[] servers = words[2].split(",");
        for (int i = 0; i < Integer.parseInt(words[4]); i++) {
            String server = servers[i % servers.length];
            CuratorFramework client =
                    CuratorFrameworkFactory.newClient(server, 30_000, 30_000, new ExponentialBackoffRetry(100, 5));
            client.start();
            clients.add(client);
        }
        locks = new Lock[Integer.parseInt(words[5])];
        for (int i = 0; i < locks.length; i++) {
            workers.add(Executors.newSingleThreadExecutor());
        }
    }

    private Lock make(int worker) {
        CuratorFramework client = clients.get(worker % clients.size());
        String where = apart ? path + "/" + worker : path;
        switch (kind) {
            case "mutex":
                InterProcessMutex mutex = new InterProcessMutex(client, where);
                return of(mutex, mutex);
            case "rw":
                InterProcessReadWriteLock rw = new InterProcessReadWriteLock(client, where);
                return of(rw.readLock(), rw.writeLock());
            case "semaphore":
                return of(new InterProcessSemaphoreV2(client, where, leases));
            case "several":
                List<String> all = new ArrayList<>();
                for (int i = 0; i < manyLocks; i++) {
                    all.add(path + "/" + i);
                }
                InterProcessMultiLock multi = new InterProcessMultiLock(client, all);
                return of(multi, multi);
            case "own":
            case "keyed":
                return own(client, worker);
            default:
                throw new IllegalArgumentException(kind);
        }
    }

    private static Lock of(InterProcessLock read, InterProcessLock write) {
        return new Lock() {
            public void acquire(boolean w) throws Exception {
                (w ? write : read).acquire();
            }

            public boolean tryAcquire() throws Exception {
                return write.acquire(0, TimeUnit.SECONDS);
            }

            public void release(boolean w) throws Exception {
                (w ? write : read).release();
            }
        };
    }

    private static Lock of(InterProcessSemaphoreV2 semaphore) {
        return new Lock() {
            private Lease lease;

            public void acquire(boolean w) throws Exception {
                lease = semaphore.acquire();
            }

            public boolean tryAcquire() throws Exception {
                return (lease = semaphore.acquire(0, TimeUnit.SECONDS)) != null;
            }

            public void release(boolean w) throws Exception {
                lease.close();
            }
        };
    }

    /** Another mutex at each use; see mostlyOwn and anyKey in own.go. */
    private Lock own(CuratorFramework client, int worker) {
        Map<Integer, InterProcessMutex> made = new HashMap<>();
        Random next = new Random(worker);
        return new Lock() {
            private InterProcessMutex held;
            private int uses;

            public void acquire(boolean w) throws Exception {
                if (kind.equals("keyed")) {
                    held = new InterProcessMutex(client, path + "/" + next.nextInt(manyLocks));
                    held.acquire();
                    return;
                }
                int which = worker * manyLocks + uses++ % manyLocks;
                if (next.nextInt(50) == 0) {
                    int other = (worker + 1 + next.nextInt(locks.length - 1)) % locks.length;
                    which = other * manyLocks + next.nextInt(manyLocks);
                }
                held = made.computeIfAbsent(which, i -> new InterProcessMutex(client, path + "/" + i));
                held.acquire();
            }

            public boolean tryAcquire() {
                throw new UnsupportedOperationException();
            }

            public void release(boolean w) throws Exception {
                held.release();
            }
        };
    }

    private boolean writes(int worker, int cycle) {
        return every == 0 || (worker * every / locks.length + cycle) % every == 0;
    }

    private Future<?> start(int worker, Work work) {
        return workers.get(worker).submit(() -> {
            if (locks[worker] == null) {
                locks[worker] = make(worker);
            }
            work.run(worker, locks[worker]);
            return null;
        });
    }

    private List<Future<?>> startFrom(int first, Work work) {
        List<Future<?>> all = new ArrayList<>();
        for (int i = first; i < locks.length; i++) {
            all.add(start(i, work));
        }
        return all;
    }

    private static void await(List<Future<?>> all) throws Exception {
        for (Future<?> one : all) {
            one.get();
        }
    }

    private String cycles(int n, long holdMicros) throws Exception {
        Recorder r = new Recorder();
        long start = System.nanoTime();
        if (turns > 0) {
            for (int k = 0; k < n; k += turns) {
                for (int i = 0; i < locks.length * turns; i++) {
                    start(i / turns, (worker, lock) -> r.cycle(lock, true, holdMicros)).get();
                }
            }
            return r.result(start);
        }
        await(startFrom(0, (worker, lock) -> {
            for (int k = 0; k < n; k++) {
                r.cycle(lock, writes(worker, k), holdMicros);
            }
        }));
        return r.result(start);
    }

    private String tries(int n) throws Exception {
        Recorder r = new Recorder();
        long start = System.nanoTime();
        start(1, (worker, lock) -> {
            for (int k = 0; k < n; k++) {
                long began = System.nanoTime();
                if (lock.tryAcquire()) {
                    throw new IllegalStateException("got what another holds");
                }
                r.add(System.nanoTime() - began);
            }
        }).get();
        return r.result(start);
    }

    private String drain() throws Exception {
        long start = System.nanoTime();
        start(0, (worker, lock) -> lock.release(true)).get();
        await(queued);
        return queue.result(start);
    }

    private static String memory() throws Exception {
        Runtime runtime = Runtime.getRuntime();
        for (int i = 0; i < 3; i++) {
            System.gc();
        }
        return String.valueOf(runtime.totalMemory() - runtime.freeMemory());
    }

    private static String processor() {
        OperatingSystemMXBean system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        return String.valueOf(system.getProcessCpuTime());
    }

    private void close() throws Exception {
        for (ExecutorService worker : workers) {
            worker.shutdown();
        }
        for (CuratorFramework client : clients) {
            client.close();
        }
    }

    private String command(String[] words) throws Exception {
        switch (words[0]) {
            case "cycles":
                return cycles(Integer.parseInt(words[1]), Long.parseLong(words[2]));
            case "hold":
                start(0, (worker, lock) -> lock.acquire(true)).get();
                return "";
            case "drop":
                start(0, (worker, lock) -> lock.release(true)).get();
                return "";
            case "try":
                return tries(Integer.parseInt(words[1]));
            case "queue":
                Recorder r = queue = new Recorder();
                queued = startFrom(1, (worker, lock) -> r.cycle(lock, true, 0));
                return "";
            case "drain":
                return drain();
            case "holdall":
                for (int i = 0; i < locks.length; i++) {
                    start(i, (worker, lock) -> lock.acquire(true)).get();
                }
                return "";
            case "dropall":
                await(startFrom(0, (worker, lock) -> lock.release(true)));
                return "";
            case "memory":
                return memory();
            case "processor":
                return processor();
            case "close":
                close();
                return "";
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        CuratorTeam team = null;
        for (String line; (line = in.readLine()) != null; ) {
            String[] words = line.split(" ");
            try {
                if (words[0].equals("open")) {
                    team = new CuratorTeam(words);
                    System.out.println("ok");
                } else if (words[0].equals("version")) {
                    System.out.println("ok " + System.getProperty("java.version"));
                } else {
                    System.out.println("ok " + team.command(words));
                }
            } catch (Exception e) {
                e.printStackTrace();
                System.out.println("error " + e);
            }
        }
        System.exit(0); // whatever threads a failed command has left
    }
}

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.retry.ExponentialBackoffRetry;

/**
 * Curator's part in a contest: java CuratorClient host:port path directory leases seconds
 *
 * <p>Each line of standard input lets one client take the lock at the path: its name, the kind of
 * lock, and how many times. Each client has a session and a thread of its own. At the end of the
 * input the program waits for all of them and ends, with 1 if any failed. It ends in any case
 * after so many seconds. A lock whose kind ends with "-soon" is asked for with a timeout.
 *
 * <p>What happens is written to the directory, outside of ZooKeeper: see journal_test.go.
 */
public final class CuratorClient {
    private static String server;
    private static String path;
    private static Path directory;
    private static int leases;
    private static volatile boolean failed;

    /** For how many seconds a kind that ends with "-soon" waits for the lock. */
    private static final long SOON = 10;

    /** What a client does once. */
    private interface Turn {
        void take() throws Exception;
    }

    public static void main(String[] args) throws Exception {
        server = args[0];
        path = args[1];
        directory = Path.of(args[2]);
        leases = Integer.parseInt(args[3]);
        endAfter(Long.parseLong(args[4]));

        Map<String, ExecutorService> clients = new HashMap<>();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null; ) {
            String[] words = line.split(" ");
            int times = Integer.parseInt(words[2]);
            clients.computeIfAbsent(words[0], name -> Executors.newSingleThreadExecutor())
                    .execute(() -> play(words[0], words[1], times));
        }
        for (ExecutorService client : clients.values()) {
            client.shutdown();
            client.awaitTermination(1, TimeUnit.DAYS); // see endAfter
        }
        System.exit(failed ? 1 : 0);
    }

    private static void endAfter(long seconds) {
        Thread t = new Thread(() -> {
            try {
                TimeUnit.SECONDS.sleep(seconds);
            } catch (InterruptedException e) {
                // then at once
            }
            System.err.println("not done after " + seconds + "s");
            Runtime.getRuntime().halt(3);
        });
        t.setDaemon(true);
        t.start();
    }

    private static void play(String name, String kind, int times) {
        try (CuratorFramework client =
                CuratorFrameworkFactory.newClient(server, 20_000, 20_000, new ExponentialBackoffRetry(100, 5))) {
            client.start();
            Turn turn = turn(client, name, kind);
            for (int i = 0; i < times; i++) {
                turn.take();
            }
        } catch (Exception e) {
            failed = true;
            System.err.println(name + " " + kind);
            e.printStackTrace();
        }
    }

    private static Turn turn(CuratorFramework client, String name, String kind) {
        boolean soon = kind.endsWith("-soon");
        switch (kind.replace("-soon", "")) {
            case "mutex":
                return () -> lock(new InterProcessMutex(client, path), soon, name, "exclusive");
            case "write":
                return () -> lock(new InterProcessReadWriteLock(client, path).writeLock(), soon, name, "exclusive");
            case "read":
                return () -> lock(new InterProcessReadWriteLock(client, path).readLock(), soon, name, "shared");
            case "semaphore":
                return () -> lease(new InterProcessSemaphoreV2(client, path, leases), name);
            default:
                throw new IllegalArgumentException(kind);
        }
    }

    private static void lock(InterProcessLock lock, boolean soon, String name, String mode) throws Exception {
        if (!soon) {
            lock.acquire();
        } else if (!lock.acquire(SOON, TimeUnit.SECONDS)) {
            throw new TimeoutException();
        }
        try {
            visit(name, mode);
        } finally {
            lock.release();
        }
    }

    private static void lease(InterProcessSemaphoreV2 semaphore, String name) throws Exception {
        try (Lease lease = semaphore.acquire()) {
            visit(name, "shared");
        }
    }

    /** What a client does while it has the lock. */
    private static void visit(String name, String mode) throws Exception {
        append("enter " + name + " " + mode + "\n");
        while (!Files.exists(directory.resolve("gate"))) {
            Thread.sleep(5);
        }
        append("leave " + name + " " + mode + "\n");
    }

    private static void append(String line) throws IOException {
        try (FileChannel log = FileChannel.open(directory.resolve("log"), StandardOpenOption.APPEND)) {
            log.write(ByteBuffer.wrap(line.getBytes()));
        }
    }
}

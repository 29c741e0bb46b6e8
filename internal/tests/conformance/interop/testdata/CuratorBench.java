import java.io.BufferedReader;
import java.io.InputStreamReader;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.retry.ExponentialBackoffRetry;

/**
 * Curator's part in a benchmark: java CuratorBench host:port path leases
 *
 * <p>For each number on standard input it takes and gives back one lease so many times, and
 * prints how many nanoseconds that took.
 */
public final class CuratorBench {
    public static void main(String[] args) throws Exception {
        try (CuratorFramework client =
                CuratorFrameworkFactory.newClient(args[0], 20_000, 20_000, new ExponentialBackoffRetry(100, 5))) {
            client.start();
            InterProcessSemaphoreV2 semaphore =
                    new InterProcessSemaphoreV2(client, args[1], Integer.parseInt(args[2]));
            BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
            for (String line; (line = in.readLine()) != null; ) {
                System.out.println(cycles(semaphore, Integer.parseInt(line)));
            }
        }
    }

    private static long cycles(InterProcessSemaphoreV2 semaphore, int n) throws Exception {
        long start = System.nanoTime();
        for (int i = 0; i < n; i++) {
            Lease lease = semaphore.acquire();
            lease.close();
        }
        return System.nanoTime() - start;
    }
}

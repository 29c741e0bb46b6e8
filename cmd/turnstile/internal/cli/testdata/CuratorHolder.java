import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.retry.ExponentialBackoffRetry;

/**
 * Holds a mutex and a lease of a semaphore: java CuratorHolder host:port mutex-path semaphore-path
 *
 * <p>It prints "held", waits for a line, releases both, and prints "released".
 */
public final class CuratorHolder {
    public static void main(String[] args) throws Exception {
        try (CuratorFramework client =
                CuratorFrameworkFactory.newClient(args[0], 20_000, 20_000, new ExponentialBackoffRetry(100, 5))) {
            client.start();
            InterProcessMutex mutex = new InterProcessMutex(client, args[1]);
            mutex.acquire();
            var lease = new InterProcessSemaphoreV2(client, args[2], 3).acquire();
            System.out.println("held");
            System.in.read();
            mutex.release();
            lease.close();
            System.out.println("released");
        }
    }
}

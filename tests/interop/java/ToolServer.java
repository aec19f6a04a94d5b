import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Scanner;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs the main methods of many programs in one JVM, some of them at a time.
 *
 * <p>A line of standard input is a run: its number, what the program reads, its class, its
 * arguments, all but the number in Base64. A line of standard output is a result: the number, the
 * exit code, and what the program wrote to standard output and standard error.
 *
 * <p>What a program does to its process is done to its run instead: it has standard streams of its
 * own; it ends with its last thread that is no daemon, or where it calls Exit.exit (nothing behind
 * that call is seen, as in a process that has ended); then its shutdown hooks run.
 */
public final class ToolServer {
    private static final InheritableThreadLocal<Run> CURRENT = new InheritableThreadLocal<>();

    private static final Class<?> JVM_HOOKS_LOCK;
    private static final Map<Thread, Thread> JVM_HOOKS;

    static {
        try {
            JVM_HOOKS_LOCK = Class.forName("java.lang.ApplicationShutdownHooks");
            var field = JVM_HOOKS_LOCK.getDeclaredField("hooks");
            field.setAccessible(true);
            @SuppressWarnings("unchecked")
            Map<Thread, Thread> found = (Map<Thread, Thread>) field.get(null);
            JVM_HOOKS = found;
        } catch (ReflectiveOperationException problem) {
            throw new IllegalStateException(problem);
        }
    }

    private static final class Ended extends Error {
        Ended() {
            super("the program has ended", null, false, false);
        }
    }

    private static final class Run extends ThreadGroup {
        private final InputStream in;
        private final ByteArrayOutputStream out = new ByteArrayOutputStream();
        private final ByteArrayOutputStream err = new ByteArrayOutputStream();
        private final List<Runnable> hooks = new ArrayList<>();
        private final CountDownLatch exited = new CountDownLatch(1);
        private final CountDownLatch answered = new CountDownLatch(1);
        private int code;

        Run(String name, byte[] text) {
            super(name);
            in = new ByteArrayInputStream(text);
        }

        synchronized void hook(Runnable hook) {
            hooks.add(hook);
        }

        void exit(int status) {
            synchronized (this) {
                if (exited.getCount() > 0) {
                    code = status;
                    exited.countDown();
                }
            }
            boolean interrupted = false;
            while (answered.getCount() > 0) {
                try {
                    answered.await();
                } catch (InterruptedException unwanted) {
                    interrupted = true;
                }
            }
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
            throw new Ended();
        }

        @Override
        public void uncaughtException(Thread thread, Throwable problem) {
            if (!(problem instanceof Ended)) {
                System.err.print("Exception in thread \"" + thread.getName() + "\" ");
                problem.printStackTrace();
            }
        }

        void main(String program, String[] arguments) {
            CURRENT.set(this);
            try {
                var main = Class.forName(program).getMethod("main", String[].class);
                main.setAccessible(true);
                main.invoke(null, (Object) arguments);
            } catch (InvocationTargetException wrapped) {
                Throwable problem = wrapped.getCause();
                uncaughtException(Thread.currentThread(), problem);
                fail(problem);
            } catch (ReflectiveOperationException problem) {
                problem.printStackTrace();
                fail(problem);
            }
        }

        private synchronized void fail(Throwable problem) {
            if (!(problem instanceof Ended) && exited.getCount() > 0) {
                code = 1;
            }
        }

        private boolean isAlive() {
            Thread[] threads = new Thread[activeCount() + 64];
            int count = enumerate(threads);
            for (int index = 0; index < count; index++) {
                if (!threads[index].isDaemon() && threads[index].isAlive()) {
                    return true;
                }
            }
            return false;
        }

        /** Hooks that the run gave to the JVM itself, which no longer has them. */
        private List<Thread> registered() {
            List<Thread> mine = new ArrayList<>();
            synchronized (JVM_HOOKS_LOCK) {
                for (Thread hook : JVM_HOOKS.keySet()) {
                    if (parentOf(hook.getThreadGroup())) {
                        mine.add(hook);
                    }
                }
            }
            mine.forEach(Runtime.getRuntime()::removeShutdownHook);
            return mine;
        }

        String answer(String program, String[] arguments) throws InterruptedException {
            CURRENT.set(this);
            Thread thread = new Thread(this, () -> main(program, arguments), "main");
            thread.setDaemon(false);
            thread.start();
            while (exited.getCount() > 0 && isAlive()) {
                Thread.sleep(2);
            }
            List<Thread> last = registered();
            synchronized (this) {
                for (Runnable hook : hooks) {
                    last.add(new Thread(this, hook, "hook"));
                }
            }
            for (Thread hook : last) {
                hook.start();
            }
            for (Thread hook : last) {
                hook.join();
            }
            Base64.Encoder encoder = Base64.getEncoder();
            String said = code + " " + encoder.encodeToString(out.toByteArray())
                + " " + encoder.encodeToString(err.toByteArray());
            answered.countDown();
            return said;
        }
    }

    /** A standard stream: what is written goes to the run that the thread belongs to. */
    private static PrintStream stream(boolean isError, OutputStream otherwise) {
        return new PrintStream(new OutputStream() {
            private OutputStream target() {
                Run run = CURRENT.get();
                return run == null ? otherwise : isError ? run.err : run.out;
            }

            @Override
            public void write(int octet) throws IOException {
                target().write(octet);
            }

            @Override
            public void write(byte[] octets, int start, int count) throws IOException {
                target().write(octets, start, count);
            }

            @Override
            public void close() {
                // A program that closes its standard output closes nothing of the next one's.
            }
        }, true, StandardCharsets.UTF_8) {
            @Override
            public void close() {
                flush();
            }
        };
    }

    private static InputStream input() {
        return new InputStream() {
            @Override
            public int read() throws IOException {
                return CURRENT.get().in.read();
            }

            @Override
            public int read(byte[] octets, int start, int count) throws IOException {
                return CURRENT.get().in.read(octets, start, count);
            }

            @Override
            public int available() throws IOException {
                return CURRENT.get().in.available();
            }
        };
    }

    public static void main(String[] none) {
        Scanner lines = new Scanner(System.in, StandardCharsets.US_ASCII);
        PrintStream answers = System.out;
        System.setErr(stream(true, System.err));
        System.setOut(stream(false, System.err));
        System.setIn(input());
        Exit.setExitProcedure((status, message) -> CURRENT.get().exit(status));
        Exit.setHaltProcedure((status, message) -> CURRENT.get().exit(status));
        Exit.setShutdownHookAdder((name, hook) -> CURRENT.get().hook(hook));
        ExecutorService runs = Executors.newCachedThreadPool();
        while (lines.hasNextLine()) {
            String[] words = lines.nextLine().split(" ");
            String[] decoded = new String[words.length - 2];
            for (int index = 2; index < words.length; index++) {
                byte[] octets = Base64.getDecoder().decode(words[index].substring(1));
                decoded[index - 2] = new String(octets, StandardCharsets.UTF_8);
            }
            byte[] text = Base64.getDecoder().decode(words[1].substring(1));
            String[] arguments = List.of(decoded).subList(1, decoded.length).toArray(String[]::new);
            runs.execute(() -> {
                try {
                    String said = new Run(words[0], text).answer(decoded[0], arguments);
                    synchronized (answers) {
                        answers.println(words[0] + " " + said);
                        answers.flush();
                    }
                } catch (InterruptedException problem) {
                    throw new IllegalStateException(problem);
                } finally {
                    CURRENT.remove();
                }
            });
        }
        Runtime.getRuntime().halt(0);
    }
}

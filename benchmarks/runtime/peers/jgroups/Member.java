import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.LockSupport;
import org.jgroups.Channel;
import org.jgroups.JChannel;
import org.jgroups.Message;
import org.jgroups.ReceiverAdapter;
import org.jgroups.View;

/** A member of a JGroups channel that speaks the lines of benchmarks/runtime/member.py. */
public class Member extends ReceiverAdapter {
    static final double STEPS_PER_OCTAVE = 32;

    final int me, n, payloadBytes;
    final JChannel channel;
    final LongAdder delivered = new LongAdder();
    final AtomicInteger members = new AtomicInteger();
    final Map<Integer, Long> latencies = new TreeMap<>();
    final long[] next;
    volatile String mode = "count";
    volatile boolean stopping;
    long sent, disorder;

    Member(String stack, int me, int n, int payloadBytes) throws Exception {
        this.me = me;
        this.n = n;
        this.payloadBytes = payloadBytes;
        this.next = new long[n];
        channel = new JChannel(stack);
        channel.setOpt(Channel.LOCAL, false);
        channel.setReceiver(this);
    }

    @Override
    public void viewAccepted(View view) {
        members.set(view.size());
    }

    @Override
    public void receive(Message message) {
        delivered.add(message.getLength() / payloadBytes);
        if (!mode.equals("count")) look(message.getRawBuffer(), message.getOffset(), message.getLength());
    }

    synchronized void look(byte[] bytes, int offset, int length) {
        ByteBuffer buffer = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
        boolean checking = mode.equals("check");
        for (int start = offset; start < offset + length; start += checking ? payloadBytes : length) {
            long time = buffer.getLong(start);
            int origin = buffer.getInt(start + 8) - 1;
            long number = buffer.getInt(start + 12);
            if (origin < 0) return;
            long took = Math.max(1, System.nanoTime() - time);
            latencies.merge((int) (Math.log(took) / Math.log(2) * STEPS_PER_OCTAVE), 1L, Long::sum);
            if (checking) {
                if (next[origin] != 0 && next[origin] != number) disorder++;
                next[origin] = number + 1;
            }
        }
    }

    /** Only the first is stamped. */
    void burst(int messages, int pack) throws Exception {
        byte[] first = new byte[payloadBytes * (pack > 1 ? messages : 1)];
        ByteBuffer.wrap(first).order(ByteOrder.LITTLE_ENDIAN)
            .putLong(System.nanoTime()).putInt(me + 1).putInt((int) (sent + 1));
        channel.send(new Message(null, null, first));
        if (pack == 1)
            for (int i = 1; i < messages; i++)
                channel.send(new Message(null, null, new byte[payloadBytes]));
        sent += messages;
    }

    void send(double rate, int pack, int burst) throws Exception {
        long start = System.nanoTime(), done = 0;
        while (!stopping) {
            if (rate == 0) {
                burst(burst, pack);
                continue;
            }
            long due = (long) ((System.nanoTime() - start) / 1e9 * rate) - done;
            done += due;
            while (due > 0 && !stopping) {
                int count = mode.equals("check") ? 1 : (int) Math.min(due, burst);
                burst(count, Math.min(count, pack));
                due -= count;
            }
            LockSupport.parkNanos(1_000_000);
        }
    }

    String load(Map<String, String> words) throws Exception {
        synchronized (this) {
            latencies.clear();
            java.util.Arrays.fill(next, 0);
            mode = words.get("mode");
            stopping = false;
        }
        double rate = Double.parseDouble(words.get("rate"));
        int pack = Integer.parseInt(words.get("pack")), burst = Integer.parseInt(words.get("burst"));
        sleepUntil(Long.parseLong(words.get("start_ns")));
        Thread sender = new Thread(() -> {
            try {
                send(rate, pack, burst);
            } catch (Exception error) {
                error.printStackTrace();
                System.exit(1);
            }
        });
        sender.start();
        Thread.sleep((long) (Double.parseDouble(words.get("warm_s")) * 1000));
        long deliveredBefore = delivered.sum(), cpuBefore = cpuNanos(), before = System.nanoTime();
        Thread.sleep((long) (Double.parseDouble(words.get("window_s")) * 1000));
        long deliveredIn = delivered.sum() - deliveredBefore, cpu = cpuNanos() - cpuBefore;
        double seconds = (System.nanoTime() - before) / 1e9;
        stopping = true;
        sender.join();
        return "sent=" + sent + " window_delivered=" + deliveredIn + " window_cpu_s=" + cpu / 1e9
            + " window_s=" + seconds;
    }

    String settle(long expected, double withinSeconds) throws Exception {
        long end = System.nanoTime() + (long) (withinSeconds * 1e9);
        while (delivered.sum() < expected && System.nanoTime() < end) Thread.sleep(5);
        Thread.sleep(20);
        synchronized (this) {
            StringBuilder histogram = new StringBuilder();
            latencies.forEach((step, count) ->
                histogram.append(histogram.length() > 0 ? "," : "").append(step).append(':').append(count));
            return "delivered=" + delivered.sum() + " disorder=" + disorder + " latencies="
                + (histogram.length() > 0 ? histogram : "-");
        }
    }

    static void sleepUntil(long nanos) throws InterruptedException {
        long left = nanos - System.nanoTime();
        if (left > 0) Thread.sleep(left / 1_000_000, (int) (left % 1_000_000));
    }

    static long cpuNanos() {
        return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean())
            .getProcessCpuTime();
    }

    /** Arguments: stack, me, n, bytes of a payload. */
    public static void main(String[] arguments) throws Exception {
        // What libraries print must not look like an answer.
        PrintStream answers = System.out;
        System.setOut(System.err);
        int n = Integer.parseInt(arguments[2]);
        Member member = new Member(arguments[0], Integer.parseInt(arguments[1]), n, Integer.parseInt(arguments[3]));
        // The first makes the group, the others find it.
        Thread.sleep(member.me == 0 ? 0 : 1500 + 800 * member.me);
        member.channel.connect("benchmark");
        while (member.members.get() < n) Thread.sleep(20);
        answers.println("ready");
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = commands.readLine()) != null && !line.startsWith("quit"); ) {
            Map<String, String> words = new HashMap<>();
            for (String word : line.split(" ")) {
                String[] pair = word.split("=", 2);
                words.put(pair[0], pair.length > 1 ? pair[1] : "");
            }
            answers.println(line.startsWith("load") ? member.load(words)
                : member.settle(Long.parseLong(words.get("expected")), Double.parseDouble(words.get("within_s"))));
        }
        System.exit(0);
    }
}

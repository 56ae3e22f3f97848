import java.util.*;
import java.util.concurrent.*;
import java.util.zip.*;

/** Threads that compress, sort and collect, with memory of the virtual machine's own (direct buffers, zlib) besides the heap. */
public class Threads {
  static long work(int seed) throws Exception {
    Random random = new Random(seed);
    TreeMap<String, Integer> words = new TreeMap<>();
    for (int i = 0; i < 50_000; ++i) words.merge(Integer.toString(random.nextInt(20_000), 36), 1, Integer::sum);
    byte[] text = words.toString().getBytes("UTF-8");
    Deflater deflater = new Deflater();
    deflater.setInput(text);
    deflater.finish();
    byte[] packed = new byte[text.length];
    int length = deflater.deflate(packed);
    deflater.end();
    Inflater inflater = new Inflater();
    inflater.setInput(packed, 0, length);
    byte[] unpacked = new byte[text.length];
    if (inflater.inflate(unpacked) != text.length || !Arrays.equals(text, unpacked)) throw new IllegalStateException("lost");
    inflater.end();
    java.nio.ByteBuffer direct = java.nio.ByteBuffer.allocateDirect(1 << 20);
    direct.put(packed, 0, length).flip();
    CRC32 crc = new CRC32();
    crc.update(direct);
    return crc.getValue() + words.size();
  }

  public static void main(String[] arguments) throws Exception {
    ExecutorService pool = Executors.newFixedThreadPool(6);
    List<Future<Long>> results = new ArrayList<>();
    for (int i = 0; i < Integer.parseInt(arguments[0]); ++i) {
      final int seed = i;
      results.add(pool.submit(() -> work(seed)));
    }
    long sum = 0;
    for (Future<Long> result : results) sum = sum * 31 + result.get();
    pool.shutdown();
    System.out.println(sum);
  }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Burns CPU in one method that the compiler will not inline away; ends by a signal. */
public class Burn {
	static long result;

	static long burnInJava(long n) {
		long x = n | 1;

		for (long i = 0; i < n; i++)
			x = x * 0x5851f42d4c957f2dL + (x >>> 33);
		return x;
	}

	public static void main(String[] args) {
		for (int i = 0; i < 200; i++)
			result += burnInJava(100_000);
		System.out.println("{\"event\":\"ready\",\"pid\":" + ProcessHandle.current().pid() + "}");
		while (true)
			result += burnInJava(1_000_000);
	}
}

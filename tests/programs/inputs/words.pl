# Hashes, strings, sorting and regular expressions over as many words as the argument says.
use strict;
use warnings;

my $state = 1;
my (%count, @words);
for (1 .. $ARGV[0]) {
  $state = ($state * 1103515245 + 12345) & 0x7fffffff;
  my $word = join '', map { chr(97 + (($state >> $_) % 26)) } 3 .. 3 + $state % 8;
  $count{$word}++;
  push @words, $word x (1 + $state % 5) if $state % 7 == 0;
}
my @sorted = sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count;
print scalar(@sorted), " different words, the most frequent: @sorted[0 .. 9]\n";
my $text = join ' ', @words;
my $doubled = () = $text =~ /\b(\w+)\1\b/g;
(my $changed = $text) =~ s/([aeiou]+)/<$1>/g;
print length($text), " characters, $doubled doubled words, ", length($changed), " after the change\n";

# A Perl program: hashes, strings, regular expressions, sorting.
use strict;
use warnings;

my %count;
my $text = join ' ', map { 'word' . ($_ * 31 % 2003) } 1 .. 20000;
$count{$1}++ while $text =~ /(\w+7)\b/g;
my @order = sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count;
print scalar(@order), " $order[0] $count{$order[0]}\n";

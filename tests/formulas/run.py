#!/usr/bin/env python3
"""Compiles public formulas with Brine, and prints how much of it equals stock Salt's compile.

  run.py PROGRAM FORMULAS OUT [-v] [--only NAME] [--case NAME]

PROGRAM is brine-formulas, FORMULAS a folder with the formulas of formulas.tsv (a folder each, with its repository's name, at its
commit), OUT a folder for what is written. Ends with 1 if a share is below its goal."""
import argparse, json, os, re, subprocess, sys
import answers as A

HERE = os.path.dirname(os.path.abspath(__file__))
# Of what stock Salt compiles, and of what it refuses: refused, and with the same sentence.
GOALS = {'suites, examples': 0.95, 'sls': 0.97, 'refused': 1.0, 'same sentence': 0.9}


def share(n, of):
    return '%d of %d (%.1f %%)' % (n, of, 100 * n / of) if of else '0 of 0'


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('program'), p.add_argument('formulas'), p.add_argument('out')
    p.add_argument('-v', action='store_true', help='each difference'), p.add_argument('--only', default=''), p.add_argument('--case', default='')
    a = p.parse_args()
    bad = 0
    for grains in sorted(os.listdir(os.path.join(HERE, 'answers'))):
        stock = os.path.join(HERE, 'answers', grains)
        unpacked, ours = os.path.join(a.out, 'answers', grains), os.path.join(a.out, 'ours', grains)
        os.makedirs(unpacked, exist_ok=True)
        for name, path in A.folder(stock).items():
            target = os.path.join(unpacked, name + '.json')
            if os.path.isdir(os.path.join(a.formulas, name)):
                with open(target, 'w') as f:
                    json.dump(A.read(path), f, ensure_ascii=False)
            elif os.path.exists(target):
                os.remove(target)
        subprocess.run([a.program, '--answers', unpacked, '--formulas', a.formulas, '--grains', os.path.join(HERE, 'grains.json'), '--set', grains,
                        '--data', os.path.join(HERE, 'data'), '--out', ours, '--only', a.only, '--case', a.case], check=True)
        compare = [sys.executable, os.path.join(HERE, 'compare.py'), stock, ours, '--json', os.path.join(ours, 'verdicts'), '--only', a.only, '--cases', re.escape(a.case)]
        text = subprocess.run(compare + ['-v'] * a.v, capture_output=True, text=True).stdout
        if a.v:
            print(text)
        verdicts = A.read(os.path.join(ours, 'verdicts'))
        counts = {}
        for name, cases in verdicts.items():
            if not os.path.isdir(os.path.join(a.formulas, name)):
                continue
            for case, verdict in cases.items():
                kind = 'sls' if case.startswith('sls:') else 'suites, examples'
                if verdict in ('equal', 'different', 'refused', 'missing'):
                    add(counts, kind, verdict == 'equal')
                else:
                    add(counts, 'refused', verdict in ('alike', 'otherwise'))
                    add(counts, 'same sentence', verdict == 'alike')
        report = json.load(open(os.path.join(ours, 'report')))
        print('%s: equal low chunks: suites and examples %s, single SLS %s; refused %s, with the same sentence %s' % (
            grains, *(share(*counts.get(k, (0, 0))) for k in ('suites, examples', 'sls', 'refused', 'same sentence'))))
        print('    %(seconds).1f s; slowest %(slowest_seconds).2f s: %(slowest)s; functions: %(computed)s calls computed, %(from the tape)s from the tape' % report, end='')
        print(', unanswered: %s' % report['unanswered'] if report['unanswered'] else '')
        bad += sum(n < GOALS[k] * of for k, (n, of) in counts.items())
    return 1 if bad else 0


def add(counts, key, good):
    n, of = counts.get(key, (0, 0))
    counts[key] = (n + good, of + 1)


if __name__ == '__main__':
    sys.exit(main())

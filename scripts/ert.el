;;; ert.el --- Run a suite and say how many passed  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Loaded by scripts/ert with a regexp for the names of the tests to
;; run, empty for all, and the file of the suite.

;;; Code:

;; A batch Emacs collects garbage after each 800 kB, which took a third of its time here.
(setq gc-cons-threshold (* 64 1024 1024))

(require 'ert)

(defvar contexture-suite nil
  "File of the suite that runs.")

(defun contexture-in-suite-p (test)
  "Return non-nil if TEST stands in the suite that runs.
A suite may load another for what it defines; that one's tests are not
its own."
  (equal contexture-suite (symbol-file (ert-test-name test) 'ert--test)))

(defun contexture-why-skipped (condition)
  "Return the reason in CONDITION, with which a test was skipped."
  (pcase condition
    (`(ert-test-skipped ,(and (pred stringp) reason)) reason)
    (`(ert-test-skipped ((skip-unless ,form) . ,_)) (format "not %S" form))
    (_ (format "%S" (cdr condition)))))

(pcase-let ((`(,regexp ,suite) (cdr (member "--" command-line-args-left))))
  (setq command-line-args-left nil
        load-prefer-newer t
        ert-quiet nil
        contexture-suite suite)
  (load suite nil t)
  (let ((stats (ert-run-tests-batch `(and ,regexp (satisfies contexture-in-suite-p)))))
    (seq-doseq (test (ert--stats-tests stats))
      (let ((result (ert-test-most-recent-result test)))
        (when (ert-test-skipped-p result)
          (princ (format "Skipped: %s: %s\n" (ert-test-name test)
                         (contexture-why-skipped
                          (ert-test-result-with-condition-condition result)))))))
    ;; A test may have printed half a line.
    (princ (format "\nSuite: %d passed, %d failed, %d skipped\n"
                   (ert-stats-completed-expected stats)
                   (ert-stats-completed-unexpected stats)
                   (ert-stats-skipped stats)))))

;;; ert.el ends here

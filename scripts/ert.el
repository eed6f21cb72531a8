;;; ert.el --- Run all suites and say how many passed  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Loaded by scripts/ert with two arguments: the directory of the suites
;; and a regexp for the names of the tests to run, empty for all.

;;; Code:

(require 'ert)

(pcase-let ((`(,directory ,regexp) (last command-line-args-left 2)))
  (setq command-line-args-left nil
        load-prefer-newer t
        ert-quiet nil)
  (dolist (file (directory-files directory t "-tests\\.el\\'"))
    (load file nil t))
  (let* ((stats (ert-run-tests-batch (if (string-empty-p regexp) t regexp)))
         (skipped (ert-stats-skipped stats))
         (failed (ert-stats-completed-unexpected stats))
         (passed (ert-stats-completed-expected stats)))
    (princ (format "ERT: %d passed, %d failed, %d skipped\n"
                   passed failed skipped))
    (kill-emacs (if (and (= failed 0) (> passed 0)) 0 1))))

;;; ert.el ends here

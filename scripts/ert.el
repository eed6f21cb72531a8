;;; ert.el --- Run all suites and say how many passed  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Loaded by scripts/ert with a regexp for the names of the tests to
;; run, empty for all, and the directories of the suites.

;;; Code:

(require 'ert)

(pcase-let ((`(,regexp . ,directories) (cdr (member "--" command-line-args-left))))
  (setq command-line-args-left nil
        load-prefer-newer t
        ert-quiet nil)
  (dolist (directory directories)
    (dolist (file (directory-files directory t "-tests\\.el\\'"))
      (load file nil t)))
  (let* ((stats (ert-run-tests-batch (if (string-empty-p regexp) t regexp)))
         (skipped (ert-stats-skipped stats))
         (failed (ert-stats-completed-unexpected stats))
         (passed (ert-stats-completed-expected stats)))
    (princ (format "ERT: %d passed, %d failed, %d skipped\n"
                   passed failed skipped))
    (kill-emacs (if (and (= failed 0) (> passed 0)) 0 1))))

;;; ert.el ends here

;;; contexture-lisp-tests.el --- Tests of what SLIME and SLY know  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Without a client, that nothing breaks.  With one, contexture-lisp-real
;; in an Emacs of its own: SLIME where Debian has it, SLY in the checkout
;; that SLY_DIR names, both with SBCL.

;;; Code:

(require 'contexture-test-helper)
(require 'contexture-lisp)
(require 'contexture-menu)
(require 'contexture-slime)
(require 'contexture-sly)

(ert-deftest contexture-lisp-does-without-clients ()
  (should-not (featurep 'slime))
  (should-not (featurep 'sly))
  (should-not (contexture-lisp-connected-p))
  (should-not (contexture-menu--lisp-p))
  (contexture-test-user-error "Neither SLIME nor SLY" (contexture-lisp-add-symbol))
  (contexture-test-user-error "SLIME is not connected to a Lisp; M-x slime starts one"
    (contexture-slime-add-symbol "car"))
  (contexture-test-user-error "SLY is not connected" (contexture-sly-add-history 1)))

(ert-deftest contexture-lisp-modes-say-that-a-client-is-missing ()
  (let ((load-path (cl-remove-if (lambda (folder) (string-match-p "slime\\|sly" folder))
                                 load-path)))
    (contexture-test-user-error "SLIME is not installed" (contexture-slime-mode 1))
    (should-not contexture-slime-mode)
    (contexture-test-user-error "SLY is not installed" (contexture-sly-mode 1))
    (should-not contexture-sly-mode)))

(defun contexture-lisp-tests--slime ()
  "Return the folder in which Debian's package has SLIME, or nil."
  (car (file-expand-wildcards "/usr/share/emacs/site-lisp/elpa/slime-[0-9]*")))

(defun contexture-lisp-tests--run (client folder)
  "Run contexture-lisp-real with CLIENT, which is in FOLDER."
  (unless (executable-find "sbcl")
    (ert-skip "There is no sbcl"))
  (let* ((own (make-temp-file "contexture-lisp" t)) ; the Lisp's files, too
         (process-environment `(,(concat "LISP_CLIENT=" client) ,(concat "TMPDIR=" own)
                                ,@process-environment))
         (folders (append (list folder (expand-file-name "contrib" folder))
                          (mapcar (lambda (library)
                                    (file-name-directory (locate-library library)))
                                  '("contexture" "contexture-test-helper")))))
    (unwind-protect
        (with-temp-buffer
          (unless (equal 0 (apply #'call-process
                                  (expand-file-name invocation-name invocation-directory)
                                  nil t nil "-Q" "--batch"
                                  `(,@(cl-loop for folder in folders
                                               append (list "-L" folder))
                                    "-l" "contexture-lisp-real"
                                    "-f" "ert-run-tests-batch-and-exit")))
            (ert-fail (buffer-string))))
      (delete-directory own t))))

(ert-deftest contexture-lisp-works-with-slime-itself ()
  (contexture-lisp-tests--run
   "slime" (or (contexture-lisp-tests--slime)
               (ert-skip "There is no SLIME (Debian: slime, cl-swank, sbcl)"))))

(ert-deftest contexture-lisp-works-with-sly-itself ()
  (contexture-lisp-tests--run
   "sly" (or (getenv "SLY_DIR")
             (ert-skip "SLY_DIR names no checkout of SLY"))))

;; With keys, a screen, and a model that says what is written: connecting,
;; streaming, completing, interrupting, quitting and connecting again.
(ert-deftest contexture-lisp-plays-slime-in-a-terminal ()
  (unless (and (contexture-lisp-tests--slime) (executable-find "sbcl"))
    (ert-skip "There is no SLIME (Debian: slime, cl-swank, sbcl)"))
  (unless (executable-find "tmux")
    (ert-skip "There is no tmux"))
  (contexture-ert-with-files nil
    (let* ((library (locate-library "contexture"))
           (script (expand-file-name "../../scripts/screens-slime" library))
           (process-environment (cons (concat "CONTEXTURE_BIN=" contexture-test-binary)
                                      process-environment)))
      (with-temp-buffer
        (unless (equal 0 (call-process script nil t nil contexture-ert-directory))
          (ert-fail (buffer-string)))))))

;;; contexture-lisp-tests.el ends here

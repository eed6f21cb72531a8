;;; trampolines.el --- Compile what advised primitives need  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Loaded by scripts/ert with PART and PARTS, two numbers, and the
;; folders of the sources.  An Emacs with native compilation compiles a
;; trampoline for each primitive that is advised or redefined, and puts
;; it where other Emacsen find it.  Emacs deletes the file before it
;; replaces it, so two that compile the same one can make each other
;; fail.  So each is compiled once here, before the suites begin.

;;; Code:

(require 'cl-lib)

(defconst contexture-trampolines-of-transient '(abort-recursive-edit top-level)
  "Primitives that transient.el advises when it is loaded.")

(defun contexture-trampolines (folders)
  "Return the primitives that the sources in FOLDERS advise or redefine."
  (let ((found contexture-trampolines-of-transient))
    (dolist (file (mapcan (lambda (folder) (directory-files folder t "\\.el\\'")) folders))
      (with-temp-buffer
        (insert-file-contents file)
        (while (re-search-forward "(\\(?:symbol-function\\|advice-add\\) #?'\\([^ ()\n]+\\)" nil t)
          (let ((name (intern (match-string 1))))
            (when (and (fboundp name) (subr-primitive-p (symbol-function name)))
              (cl-pushnew name found))))))
    (sort found #'string<)))

(pcase-let ((`(,part ,parts . ,folders) (cdr (member "--" command-line-args-left))))
  (setq command-line-args-left nil)
  (when (and (featurep 'native-compile) (require 'comp nil t))
    (cl-loop for name in (contexture-trampolines folders)
             for number from 0
             when (= (mod number (string-to-number parts)) (string-to-number part))
             unless (comp-trampoline-search name)
             do (comp-trampoline-compile name))))

;;; trampolines.el ends here

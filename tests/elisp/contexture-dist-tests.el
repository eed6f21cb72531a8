;;; contexture-dist-tests.el --- The package as it is distributed  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Packs the package, installs it as a user would, in an Emacs of its own
;; with a home of its own, and works with what was installed.

;;; Code:

(require 'contexture-test-helper)

(defconst contexture-dist-test-root
  (expand-file-name "../.." (file-name-directory (or load-file-name buffer-file-name)))
  "Where the sources are.")

(defconst contexture-dist-test-installed
  '(progn
     (package-activate-all)
     (cl-assert (not (featurep 'contexture)))
     (cl-assert (not (process-list)))
     (dolist (command '(contexture-add-region contexture-list contexture-preview
                        contexture-doctor contexture-info contexture-gptel-mode
                        contexture-global-mode))
       (cl-assert (autoloadp (symbol-function command)) t))
     (with-temp-buffer
       (insert "marked")
       (contexture-add-region (point-min) (point-max))
       (cl-assert (file-in-directory-p (locate-library "contexture") package-user-dir))
       (cl-assert (string-suffix-p ".elc" (locate-library "contexture")))
       (princ (contexture-request
               'context-to-string (list :manager (contexture-current-manager)))))
     (info "contexture")
     (cl-assert (file-in-directory-p Info-current-file package-user-dir))
     (princ Info-current-node)
     (contexture-disconnect))
  "What is done with the installed package.")

(defmacro contexture-dist-test-in-folder (&rest body)
  "Run BODY in a new folder that is home, too, with the server on PATH."
  (declare (indent 0) (debug t))
  `(contexture-ert-with-files '(("bin/" . ""))
     :project nil
     (dolist (program '("makeinfo" "install-info" "tar"))
       (unless (executable-find program) (ert-skip (concat program " is not installed"))))
     (make-symbolic-link contexture-test-binary "bin/contexture")
     (let ((process-environment
            (append (list (concat "HOME=" contexture-ert-directory)
                          (concat "EMACS=" (contexture-dist-test-emacs))
                          (concat "PATH=" contexture-ert-directory "bin:" (getenv "PATH"))
                          "SOURCE_DATE_EPOCH=1700000000" "XDG_STATE_HOME"
                          "XDG_CONFIG_HOME" "CONTEXTURE_STATE" "EMACSLOADPATH")
                    process-environment)))
       ,@body)))

(defun contexture-dist-test-emacs ()
  "Return the file name of the Emacs that runs."
  (expand-file-name invocation-name invocation-directory))

(defun contexture-dist-test-run (program &rest args)
  "Run PROGRAM with ARGS; return what it prints to stdout, or fail."
  (with-temp-buffer
    (let ((status (apply #'call-process program nil (list t "stderr") nil args)))
      (unless (equal status 0)
        (insert-file-contents "stderr")
        (ert-fail (list program status (buffer-string)))))
    (buffer-string)))

(defun contexture-dist-test-pack (folder)
  "Pack the package into FOLDER and return the archive's file name."
  (contexture-dist-test-run (expand-file-name "scripts/dist" contexture-dist-test-root)
                            (expand-file-name folder))
  (car (directory-files folder t "\\.tar\\'")))

(defun contexture-dist-test-eval (form)
  "Evaluate FORM in a new Emacs; return what it prints."
  (contexture-dist-test-run
   (contexture-dist-test-emacs) "-Q" "--batch"
   "--eval" (prin1-to-string
             `(progn (require 'cl-lib) (require 'package) (require 'info)
                     (setq package-user-dir
                           ,(concat contexture-ert-directory "elpa"))))
   "--eval" (prin1-to-string form)))

(ert-deftest contexture-dist-installs-and-works ()
  (contexture-dist-test-in-folder
    (let ((archive (contexture-dist-test-pack "dist")))
      (contexture-dist-test-eval `(package-install-file ,archive))
      (should (equal (contexture-dist-test-eval contexture-dist-test-installed)
                     "## Context\n\n### Text\n```text\nmarked\n```\n\nTop")))))

(ert-deftest contexture-dist-has-what-it-should-and-no-more ()
  (contexture-dist-test-in-folder
    (let* ((archive (contexture-dist-test-pack "dist"))
           (base (file-name-base archive))
           (lisp (directory-files (expand-file-name "elisp" contexture-dist-test-root)
                                  nil "\\.el\\'")))
      (should (string-match-p "\\`contexture-[0-9.]+\\'" base))
      (should (equal (sort (split-string (contexture-dist-test-run "tar" "tf" archive)
                                         "\n" t)
                           #'string<)
                     (sort (mapcar (lambda (name) (concat base "/" name))
                                   (append '("" "COPYING" "NEWS" "README.md"
                                             "contexture-pkg.el" "contexture.info" "dir")
                                           (cl-remove "contexture-autoloads.el" lisp :test #'equal)))
                           #'string<))))))

(ert-deftest contexture-dist-makes-the-same-bytes-again ()
  (contexture-dist-test-in-folder
    (let ((digest (lambda (archive)
                    (with-temp-buffer
                      (set-buffer-multibyte nil)
                      (insert-file-contents-literally archive)
                      (secure-hash 'sha256 (current-buffer))))))
      (should (equal (funcall digest (contexture-dist-test-pack "one"))
                     (funcall digest (contexture-dist-test-pack "two")))))))

;;; contexture-dist-tests.el ends here

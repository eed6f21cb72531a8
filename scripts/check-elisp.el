;;; check-elisp.el --- Run all machine checks on the package  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Loaded by scripts/check-elisp, with the directory to check and the
;; directory for the compiled files as the last arguments.

;;; Code:

(require 'cl-lib)
(require 'package)
(require 'checkdoc)
(require 'check-declare)

(defvar check-findings 0
  "How many findings were printed.")

(defun check-report (check text)
  "Print the finding TEXT of CHECK."
  (cl-incf check-findings)
  (princ (format "%s: %s\n" check text)))

(defun check-kit-p (file)
  "Return non-nil if FILE belongs to the package llm-ert."
  (string-match-p "/llm-ert[^/]*\\'" file))

(defun check-compile (files folder)
  "Byte-compile each of FILES in an Emacs of its own, and report the warnings.
In one Emacs, a file could use what another happened to load before it.
Copy FILES to FOLDER, and compile them there: each Emacs then loads the
compiled files of those before it, which is quicker."
  (dolist (file files)
    (copy-file file (file-name-as-directory folder) t t))
  (dolist (file files)
    (with-temp-buffer
      (unless (zerop (call-process
                      (expand-file-name invocation-name invocation-directory) nil t nil
                      "-Q" "--batch" "-L" folder "-f" "batch-byte-compile"
                      (expand-file-name (file-name-nondirectory file) folder)))
        (check-report "byte-compile" (concat file " does not compile")))
      (goto-char (point-min))
      (while (re-search-forward "^.*:\\(?:[0-9]+:\\)* *\\(?:Warning\\|Error\\): .*$" nil t)
        (check-report "byte-compile" (match-string 0))))))

(defun check-docstrings (files)
  "Report what checkdoc says of FILES."
  (let ((checkdoc-create-error-function
         (lambda (text start _end &optional _unfixable)
           (check-report "checkdoc"
                         (format "%s:%d: %s"
                                 (file-name-nondirectory (buffer-file-name))
                                 (line-number-at-pos (or start 1)) text))
           nil))
        (checkdoc-arguments-in-order-flag nil)
        (checkdoc-verb-check-experimental-flag nil)
        (inhibit-message t))
    (dolist (file files)
      (with-current-buffer (find-file-noselect file)
        (checkdoc-current-buffer t)))))

(defun check-package (files)
  "Report what package-lint says of FILES."
  (dolist (directory '("/usr/share/emacs/site-lisp/elpa" ; where Debian puts it
                       "/usr/share/emacs/site-lisp/elpa-src"))
    (add-to-list 'package-directory-list directory))
  (package-initialize)
  (if (not (require 'package-lint nil t))
      (check-report "package-lint" "not installed (Debian: apt-get install elpa-package-lint)")
    (let ((main (cl-find "/contexture.el" files :test #'string-suffix-p))
          (ert (cl-find "/contexture-ert.el" files :test #'string-suffix-p))
          (kit (cl-find "/llm-ert.el" files :test #'string-suffix-p)))
      (dolist (file files)
        (with-current-buffer (find-file-noselect file)
          (setq-local package-lint-main-file
                      (cond ((check-kit-p file) kit)
                            ((string-match-p "/contexture-ert[^/]*\\'" file) ert)
                            (t main)))
          (dolist (finding (cl-remove-if #'check-outdated-p (package-lint-buffer)))
            (pcase-let ((`(,line ,column ,level ,text) finding))
              (check-report "package-lint"
                            (format "%s:%s:%s: %s: %s"
                                    (file-name-nondirectory file)
                                    line column level text)))))))))

(defun check-outdated-p (finding)
  "Whether FINDING says that Debian's package-lint is old, or of no archive.
It knows no release of Emacs after 27.1.  The packages that the package
for tests requires are in no archive yet."
  (string-match-p "uninstallable in all released Emacs versions\\|\
Package \\(?:contexture\\|llm-ert\\) is not installable" (nth 3 finding)))

(defun check-declarations (files)
  "Report the functions that FILES declare and that do not exist."
  (let ((inhibit-message t))
    (pcase-dolist (`(,library . ,problems) (apply #'check-declare-files files))
      (pcase-dolist (`(,file ,function ,problem) problems)
        (check-report "check-declare"
                      (format "%s: %s, declared to be in %s: %s"
                              (file-name-nondirectory file) function library
                              problem))))))

(defun check-names (files)
  "Report what two of FILES, or two places of one, define by the same name.
The later definition would replace the first, and no compiler says so."
  (let ((seen (make-hash-table :test #'equal)))
    (dolist (file files)
      (with-temp-buffer
        (insert-file-contents file)
        (while (re-search-forward "^(\\(?:cl-\\)?def\\(?:un\\|macro\\|subst\\) \\([^ ()\n]+\\)" nil t)
          (let ((name (match-string 1)))
            (when (gethash name seen)
              (check-report "names" (format "%s: %s is defined in %s, too"
                                            (file-name-nondirectory file) name
                                            (file-name-nondirectory (gethash name seen)))))
            (puthash name file seen)))))))

(defun check-regexps (folders)
  "Report what relint says of the regular expressions in FOLDERS.
It is in no archive that is always there, so it may be missing."
  (if-let* ((relint (locate-library "relint"))
            (xr (locate-library "xr")))
      (with-temp-buffer
        (unless (equal 0 (apply #'call-process
                                (expand-file-name invocation-name invocation-directory)
                                nil t nil "-Q" "--batch"
                                "-L" (file-name-directory relint)
                                "-L" (file-name-directory xr)
                                "-l" "relint" "-f" "relint-batch" folders))
          (check-report "relint" (buffer-string))))
    (princ "check-elisp: without relint (Debian: apt-get install elpa-relint)\n")))

(pcase-let* ((`(,directory ,folder) (last command-line-args-left 2))
       (files (directory-files directory t "\\.el\\'")))
  (setq command-line-args-left nil
        load-prefer-newer t)
  (push directory load-path)
  ;; What the package loads into Lisp images belongs to it.
  (dolist (file (directory-files directory t "\\.lisp\\'"))
    (copy-file file (file-name-as-directory folder) t t))
  ;; llm-ert needs none of the other files, so it is compiled without them.
  (check-compile (cl-remove-if-not #'check-kit-p files) folder)
  (check-compile (cl-remove-if #'check-kit-p files) folder)
  (check-docstrings files)
  (check-package files)
  (check-declarations files)
  (check-names files)
  (check-regexps (list directory (expand-file-name "../tests/elisp" directory)))
  (princ (format "check-elisp: %d files, %d findings\n"
                 (length files) check-findings))
  (kill-emacs (if (and files (= check-findings 0)) 0 1)))

;;; check-elisp.el ends here

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
               'context-to-string (list :manager (contexture-adding-context)))))
     (info "contexture")
     (cl-assert (file-in-directory-p Info-current-file package-user-dir))
     (princ Info-current-node)
     (contexture-disconnect))
  "What is done with the installed package.")

(defmacro contexture-dist-test-in-folder (&rest body)
  "Run BODY in a new folder that is home, too, with the server on PATH."
  (declare (indent 0) (debug t))
  `(llm-ert-with-files '(("bin/" . ""))
     :project nil
     (dolist (program '("makeinfo" "install-info" "tar"))
       (unless (executable-find program) (ert-skip (concat program " is not installed"))))
     (make-symbolic-link contexture-test-binary "bin/contexture")
     (let ((process-environment
            (append (list (concat "HOME=" llm-ert-directory)
                          (concat "EMACS=" (contexture-dist-test-emacs))
                          (concat "PATH=" llm-ert-directory "bin:" (getenv "PATH"))
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

(defun contexture-dist-test-pack (folder &optional name)
  "Pack the packages into FOLDER and return the archive's file name of NAME.
NAME is \"contexture\" by default."
  (contexture-dist-test-run (expand-file-name "scripts/dist" contexture-dist-test-root)
                            (expand-file-name folder))
  (car (directory-files folder t (concat "\\`" (or name "contexture")
                                         "-[0-9.]+\\.tar\\'"))))

(defun contexture-dist-test-eval (form)
  "Evaluate FORM in a new Emacs; return what it prints."
  (contexture-dist-test-run
   (contexture-dist-test-emacs) "-Q" "--batch"
   "--eval" (prin1-to-string
             `(progn (require 'cl-lib) (require 'package) (require 'info)
                     (setq package-user-dir
                           ,(concat llm-ert-directory "elpa"))))
   "--eval" (prin1-to-string form)))

(defun contexture-dist-test-install (archive)
  "Install ARCHIVE in a new Emacs, which must not warn of anything."
  (contexture-dist-test-eval `(package-install-file ,archive))
  (with-temp-buffer
    (insert-file-contents "stderr")
    (should (string-search "Compiling " (buffer-string)))
    (should-not (string-match-p "warning\\|error" (buffer-string)))))

(ert-deftest contexture-dist-installs-and-works ()
  (contexture-dist-test-in-folder
    (let ((archive (contexture-dist-test-pack "dist")))
      (contexture-dist-test-install archive)
      (should (string-match-p
               (rx bos "## Context\n\n### Text (from  *temp*:1) [as of " (+ nonl) "]\n"
                   "```text\nmarked\n```\n\nTop" eos)
               (contexture-dist-test-eval contexture-dist-test-installed))))))

(ert-deftest contexture-dist-has-what-it-should-and-no-more ()
  (contexture-dist-test-in-folder
    (let* ((archive (contexture-dist-test-pack "dist"))
           (base (file-name-base archive))
           (lisp (directory-files (expand-file-name "elisp" contexture-dist-test-root)
                                  nil "\\.\\(?:el\\|lisp\\)\\'")))
      (should (string-match-p "\\`contexture-[0-9.]+\\'" base))
      (should (equal (sort (split-string (contexture-dist-test-run "tar" "tf" archive)
                                         "\n" t)
                           #'string<)
                     (sort (mapcar (lambda (name) (concat base "/" name))
                                   (append '("" "COPYING" "NEWS" "README.md"
                                             "contexture-pkg.el" "contexture.info" "dir")
                                           (cl-remove-if
                                            (lambda (name)
                                              (string-match-p
                                               "-autoloads\\|\\(?:contexture\\|llm\\)-ert" name))
                                            lisp)))
                           #'string<))))))

(ert-deftest contexture-dist-has-a-package-for-tests ()
  (contexture-dist-test-in-folder
    (let ((test '(ert-deftest adds ()
                   (llm-ert-with-model '("Because.")
                     (contexture-ert-with-server
                       (contexture-request 'open-session '(:name "s"))
                       (contexture-request 'chat '(:session "s" :content "Why?"))))))
          (archive (contexture-dist-test-pack "dist"))
          (ert (contexture-dist-test-pack "dist" "contexture-ert")))
      (contexture-dist-test-install archive)
      (contexture-dist-test-install (contexture-dist-test-pack "dist" "llm-ert"))
      (contexture-dist-test-install ert)
      (contexture-dist-test-eval
       `(progn (package-activate-all)
               (require 'contexture-ert)
               (cl-assert (string-suffix-p ".elc" (locate-library "contexture-ert")))
               ,test
               (let ((stats (ert-run-tests-batch t)))
                 (cl-assert (= 1 (ert-stats-completed-expected stats)))))))))

(ert-deftest contexture-dist-kit-for-tests-stands-alone ()
  (contexture-dist-test-in-folder
    (contexture-dist-test-install (contexture-dist-test-pack "dist" "llm-ert"))
    (let ((files (contexture-dist-test-run
                  "tar" "tf" (contexture-dist-test-pack "dist" "llm-ert"))))
      (should (string-match-p "^llm-ert-[0-9.]+/README\\.md$" files))
      (should-not (string-search "contexture" files)))
    (contexture-dist-test-eval
     '(progn (package-activate-all)
             (require 'llm-ert)
             (cl-assert (not (cl-some (lambda (it) (string-prefix-p "contexture" it))
                                      (mapcar #'symbol-name features))))
             (cl-assert (not (locate-library "contexture")))
             (ert-deftest asks ()
               (should
                (equal
                 (plist-get
                  (car (llm-ert-with-model '("Because.")
                         (with-current-buffer
                             (let ((url-request-method "POST")
                                   (url-request-data
                                    "{\"messages\":[{\"role\":\"user\",\"content\":\"Why?\"}]}"))
                               (url-retrieve-synchronously
                                (concat (llm-ert-url) "/v1/messages") t t))
                           (should (string-search "Because." (buffer-string))))))
                  :prompt)
                 "Why?")))
             (let ((stats (ert-run-tests-batch t)))
               (cl-assert (= 1 (ert-stats-completed-expected stats))))))))

(defun contexture-dist-test-recipe (name)
  "Return the files of Lisp that the recipe NAME names, and the others."
  (let ((default-directory contexture-dist-test-root)
        (recipe (with-temp-buffer
                  (insert-file-contents
                   (expand-file-name (concat "recipes/" name) contexture-dist-test-root))
                  (read (current-buffer))))
        files)
    (should (equal (car recipe) (intern name)))
    (dolist (entry (plist-get (cdr recipe) :files))
      (setq files (pcase entry
                    (`(:exclude ,pattern)
                     (cl-set-difference files (file-expand-wildcards pattern)
                                        :test #'equal))
                    (_ (append files (file-expand-wildcards entry))))))
    (cl-assert files)
    (mapcar #'file-name-nondirectory files)))

(ert-deftest contexture-dist-recipes-have-the-files-of-the-packages ()
  (contexture-dist-test-in-folder
    (dolist (name '("contexture" "contexture-ert" "llm-ert"))
      (let ((archive (contexture-dist-test-pack "dist" name)))
        (should (equal
                 (sort (cl-remove-if-not
                        (lambda (file) (string-match-p "\\.\\(el\\|lisp\\)\\'" file))
                        (cl-remove "contexture-autoloads.el"
                                   (contexture-dist-test-recipe name) :test #'equal))
                       #'string<)
                 (sort (cl-loop for file in (split-string (contexture-dist-test-run
                                                           "tar" "tf" archive)
                                                          "\n" t)
                                for base = (file-name-nondirectory file)
                                when (and (string-match-p "\\.\\(el\\|lisp\\)\\'" base)
                                          (not (string-suffix-p "-pkg.el" base)))
                                collect base)
                       #'string<)))))))

(defun contexture-dist-test-nongnu (entry)
  "Return the names of the files that NonGNU ELPA would pack for ENTRY."
  (let* ((place (format "packages/%s" (car entry)))
         (files (contexture-dist-test-run
                 "git" "-C" contexture-dist-test-root "ls-files")))
    (make-directory "packages" t)
    (make-symbolic-link (directory-file-name contexture-dist-test-root) place)
    (llm-ert-write-file
     "list" (mapconcat (lambda (file) (concat place "/" file "\n")) (split-string files) ""))
    (apply #'contexture-dist-test-run "tar"
           `(,@(mapcar (lambda (ignored) (concat "--exclude=" place "/" ignored))
                       (plist-get (cdr entry) :ignored-files))
             "-T" "list" "-chf" "packed.tar"))
    (mapcar (lambda (file)
              (string-remove-prefix
               (plist-get (cdr entry) :lisp-dir)
               (string-remove-prefix (concat place "/") file)))
            (split-string (contexture-dist-test-run "tar" "tf" "packed.tar")))))

(ert-deftest contexture-dist-entries-of-nongnu-elpa-have-the-files-of-the-packages ()
  (unless (file-exists-p (expand-file-name ".git" contexture-dist-test-root))
    (ert-skip "These are not the sources in Git"))
  (contexture-dist-test-in-folder
    (dolist (entry (with-temp-buffer
                     (insert-file-contents
                      (expand-file-name "recipes/nongnu-elpa.eld" contexture-dist-test-root))
                     (read (current-buffer))))
      (let ((packed (contexture-dist-test-nongnu entry)))
        (should-not (cl-set-difference
                     packed
                     (append '("LICENSE" "NEWS" "README.md")
                             (mapcar (lambda (file) (concat "/" file))
                                     (contexture-dist-test-recipe
                                      (symbol-name (car entry)))))
                     :test #'equal))
        (should (member (format "/%s.el" (car entry)) packed))))))

(ert-deftest contexture-dist-makes-the-same-bytes-again ()
  (contexture-dist-test-in-folder
    (let ((digest (lambda (archive)
                    (with-temp-buffer
                      (set-buffer-multibyte nil)
                      (insert-file-contents-literally archive)
                      (secure-hash 'sha256 (current-buffer))))))
      (should (equal (funcall digest (contexture-dist-test-pack "one"))
                     (funcall digest (contexture-dist-test-pack "two")))))))

;;;; In the user's init file

(defun contexture-dist-test-forms ()
  "Return the forms of Emacs Lisp in the README's section about installing."
  (with-temp-buffer
    (insert-file-contents (expand-file-name "README.md" contexture-dist-test-root))
    (re-search-forward "^## Install")
    (let ((end (save-excursion (re-search-forward "^## ") (point))))
      (cl-loop while (re-search-forward "^```elisp\n\\(\\(?:.*\n\\)+?\\)```" end t)
               collect (car (read-from-string
                             (concat "(progn " (match-string 1) ")")))))))

(defun contexture-dist-test-lay-out ()
  "Put the package where `make install' does, and return its autoloads' names."
  (let ((folder ".local/share/emacs/site-lisp/contexture"))
    (make-directory (file-name-directory folder) t)
    (copy-directory (expand-file-name "elisp" contexture-dist-test-root) folder)
    (dolist (file (directory-files folder t "\\.elc\\'\\|-autoloads\\.el\\'"))
      (delete-file file))
    (contexture-dist-test-eval
     `(package-generate-autoloads "contexture" ,(expand-file-name folder)))
    (with-temp-buffer
      (insert-file-contents (concat folder "/contexture-autoloads.el"))
      (cl-loop while (re-search-forward "^(autoload '\\([^ ]+\\)" nil t)
               collect (intern (match-string 1))))))

(defun contexture-dist-test-init (form commands)
  "Check what a new Emacs knows after FORM, before any key: also COMMANDS."
  (should (equal (contexture-dist-test-eval
                  `(progn
                     ,form
                     (prin1 (list (key-binding (kbd "C-c x d"))
                                  (lookup-key contexture-command-map "l")
                                  (cl-remove-if #'fboundp ',commands)
                                  (process-list)))))
                 "(contexture-add-defun contexture-list nil nil)")))

(ert-deftest contexture-dist-readme-says-what-to-write-in-the-init-file ()
  (contexture-dist-test-in-folder
    (let ((commands (contexture-dist-test-lay-out))
          (forms (contexture-dist-test-forms)))
      (should (> (length commands) 50))
      (should (equal (length forms) 2))
      (contexture-dist-test-init (nth 0 forms) commands))))

(ert-deftest contexture-dist-readme-says-what-to-write-for-use-package ()
  (let ((folders (cl-mapcan (lambda (name)     ; Emacs 28 does not bring it
                             (file-expand-wildcards
                              (format "/usr/share/emacs/site-lisp/elpa/%s-[0-9]*" name)))
                           '("use-package" "bind-key"))))
    (unless (or folders (locate-library "use-package"))
      (ert-skip "There is no use-package (Debian: elpa-use-package)"))
    (contexture-dist-test-in-folder
      (contexture-dist-test-init
       `(progn (setq load-path (append ',folders load-path))
               (require 'use-package)
               ,(nth 1 (contexture-dist-test-forms)))
       (contexture-dist-test-lay-out)))))

;;; contexture-dist-tests.el ends here

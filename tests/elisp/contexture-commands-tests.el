;;; contexture-commands-tests.el --- Tests of all commands  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; What is true of every command, whatever it does: that it is one, that
;; its docstring is for people, and that help shows it with its key.

;;; Code:

(require 'contexture-test-helper)

(defconst contexture-commands-tests--folder
  (file-name-directory (locate-library "contexture"))
  "Where the package is.")

(defun contexture-commands-tests--all ()
  "Load the package, and return its commands in alphabetical order."
  (let (commands)
    (dolist (file (directory-files contexture-commands-tests--folder t
                                   "\\`contexture[a-z-]*\\.el\\'"))
      (unless (string-suffix-p "-autoloads.el" file)
        (require (intern (file-name-base file)))))
    (mapatoms
     (lambda (symbol)
       (when (and (string-prefix-p "contexture-" (symbol-name symbol))
                  (commandp symbol)
                  (string-prefix-p contexture-commands-tests--folder
                                   (or (symbol-file symbol 'defun) "")))
         (push symbol commands))))
    (sort commands #'string-lessp)))

(defun contexture-commands-tests--help (map)
  "Return what help shows of MAP, the name of a keymap."
  (substitute-command-keys (format "\\{%s}" map)))

(defun contexture-commands-tests--in (map)
  "Return the package's commands in the keymap MAP."
  (let (commands)
    (map-keymap (lambda (_ binding)
                  (cond ((keymapp binding)
                         (setq commands (append (contexture-commands-tests--in binding)
                                                commands)))
                        ((string-prefix-p "contexture-" (format "%s" binding))
                         (push binding commands))))
                map)
    commands))

(ert-deftest contexture-commands-are-those-of-the-package ()
  (let ((commands (contexture-commands-tests--all)))
    (should (> (length commands) 50))
    (should-not (cl-remove-if-not (lambda (command)
                                    (string-match-p "--" (symbol-name command)))
                                  commands))))

(ert-deftest contexture-commands-say-what-they-do ()
  (dolist (command (contexture-commands-tests--all))
    (ert-info ((symbol-name command))
      (let* ((text (or (documentation command) ""))
             (first (car (split-string text "\n"))))
        (should (interactive-form command))
        (should (string-match-p "\\`[A-Z].*\\.\\(  .*\\)?\\'" first))
        (should (<= (string-width first) 80))))))

(ert-deftest contexture-commands-are-in-the-manual ()
  (with-temp-buffer
    (insert-file-contents (expand-file-name "../docs/contexture.texi"
                                            contexture-commands-tests--folder))
    (dolist (command (cl-remove-if (lambda (it) (get it 'derived-mode-parent))
                                   (contexture-commands-tests--all)))
      (ert-info ((symbol-name command))
        (goto-char (point-min))
        (should (re-search-forward (format "\\_<%s\\_>" command) nil t))))))

(ert-deftest contexture-commands-are-shown-with-their-keys ()
  (contexture-commands-tests--all)
  (dolist (map '(contexture-command-map contexture-list-mode-map
                 contexture-preview-mode-map contexture-doctor-mode-map
                 contexture-info-mode-map contexture-list-edit-mode-map))
    (let ((help (contexture-commands-tests--help map)))
      (dolist (command (contexture-commands-tests--in (symbol-value map)))
        (ert-info ((format "%s in %s" command map))
          (should (string-match-p (format "^[^ \t\n].*[ \t]%s$" command) help)))))))

(ert-deftest contexture-commands-are-in-the-help-of-the-modes ()
  "That is what `describe-mode' shows."
  (contexture-commands-tests--all)
  (pcase-dolist (`(,mode . ,command)
                 '((contexture-mode . contexture-add-dwim)
                   (contexture-mode . contexture-doctor)
                   (contexture-list-mode . contexture-list-execute)
                   (contexture-list-mode . contexture-list-filter-state)
                   (contexture-preview-mode . contexture-copy)
                   (contexture-doctor-mode . contexture-info)
                   (contexture-info-mode . contexture-doctor)))
    (ert-info ((format "%s in %s" command mode))
      (should (string-match-p (format "\\_<%s\\_>" command)
                              (substitute-command-keys (documentation mode)))))))

;;;; With packages that many people use

(ert-deftest contexture-commands-work-with-other-packages ()
  (let ((folder (or (getenv "PACKAGES_DIR") (ert-skip "PACKAGES_DIR is not set"))))
    (with-temp-buffer
      (let ((status
             (apply #'call-process
                    (expand-file-name invocation-name invocation-directory)
                    nil t nil "-Q" "--batch"
                    `(,@(cl-loop for package in (directory-files folder t "\\`[^.]")
                                 append (list "-L" package))
                      ,@(cl-loop for library in '("contexture" "contexture-test-helper")
                                 append (list "-L" (file-name-directory
                                                    (locate-library library))))
                      "-l" "contexture-packages-real"
                      "-f" "ert-run-tests-batch-and-exit"))))
        (unless (equal status 0)
          (ert-fail (buffer-string)))))))

(provide 'contexture-commands-tests)
;;; contexture-commands-tests.el ends here

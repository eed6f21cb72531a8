;;; contexture-commands-tests.el --- Tests of all commands  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; What is true of every command, whatever it does: that it is one, that
;; its docstring is for people, and that help shows it with its key.

;;; Code:

(require 'contexture-test-helper)
(require 'savehist)
(require 'map)

(defvar contexture-question-history)

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
                  ;; Another name of a command is no other command.
                  (not (symbolp (symbol-function symbol)))
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
    (insert-file-contents (expand-file-name "docs/contexture.texi" contexture-test-root))
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

(ert-deftest contexture-commands-show-the-keys-of-a-mode-with-a-question-mark ()
  (contexture-commands-tests--all)
  (let ((modes (cl-loop for symbol being the symbols
                        for name = (symbol-name symbol)
                        when (and (string-match-p "\\`contexture-[a-z-]*-mode\\'" name)
                                  (eq (get symbol 'derived-mode-parent) 'special-mode))
                        collect symbol)))
    (should (> (length modes) 4))
    (dolist (mode (cons 'contexture-list-mode modes))
      (ert-info ((symbol-name mode))
        (with-temp-buffer
          (funcall mode)
          (should (eq (key-binding "?") 'describe-mode)))))))

;;;; Tool bars

(ert-deftest contexture-commands-are-in-tool-bars ()
  (contexture-commands-tests--all)
  (dolist (mode '(contexture-list-mode contexture-dashboard-mode contexture-conversation-mode))
    (ert-info ((symbol-name mode))
      (unless (featurep 'tool-bar)
        (with-temp-buffer
          (funcall mode)
          (should-not (featurep 'tool-bar))
          (should-not (local-variable-p 'tool-bar-map))))
      (unwind-protect
          (progn
            (require 'tool-bar)
            (with-temp-buffer
              (funcall mode)
              (let ((items (cdr (buffer-local-value 'tool-bar-map (current-buffer)))))
                (should (<= 4 (length items) 6))
                (pcase-dolist (`(,key menu-item ,_ ,command . ,(map :image :label)) items)
                  (should (eq key command))
                  (should (commandp command))
                  (should (stringp label))
                  ;; The image is a form that names the files to look for.
                  (string-match "\"\\([^\"]*\\)\\.pbm\"" (prin1-to-string image))
                  (should (file-exists-p
                           (expand-file-name
                            (format "images/%s.pbm"
                                    (match-string 1 (prin1-to-string image)))
                            data-directory)))))))
        (setq features (delq 'tool-bar features))))))

;;;; What is typed in the minibuffer

(defun contexture-commands-tests--forms (function form)
  "Return the calls of FUNCTION in FORM."
  (when (proper-list-p form)
    (append (and (eq (car form) function) (list form))
            (cl-mapcan (lambda (it) (contexture-commands-tests--forms function it))
                       (copy-sequence form)))))

(defun contexture-commands-tests--type (keys form)
  "Return the value of FORM, which reads what the KEYS type.
KEYS are strings; each is a line."
  (let (value)
    (with-temp-buffer
      (let ((map (make-sparse-keymap)))
        (define-key map [f5] (lambda () (interactive) (setq value (eval form t))))
        (use-local-map map)
        (switch-to-buffer (current-buffer))
        (execute-kbd-macro
         (vconcat [f5] (mapconcat (lambda (line) (concat line "\r")) keys "")))))
    value))

(defun contexture-commands-tests--remembered (text)
  "Return the histories with an entry that has TEXT in it."
  (let (found)
    (mapatoms
     (lambda (symbol)
       (when (and (string-match-p "history\\'" (symbol-name symbol))
                  (boundp symbol)
                  (consp (symbol-value symbol))
                  (string-search text (prin1-to-string (symbol-value symbol))))
         (push symbol found))))
    found))

(ert-deftest contexture-commands-keep-what-is-typed-in-histories-of-their-own ()
  "A history that commands share offers what was typed for others."
  (dolist (file (directory-files contexture-commands-tests--folder t
                                 "\\`contexture[a-z-]*\\.el\\'"))
    (with-temp-buffer
      (insert-file-contents file)
      (condition-case nil
          (while t
            (dolist (form (contexture-commands-tests--forms 'read-string
                                                            (read (current-buffer))))
              (ert-info ((format "%s: %S" (file-name-nondirectory file) form))
                (should (nth 3 form)))))
        (end-of-file)))))

(ert-deftest contexture-commands-have-histories-that-outlive-emacs ()
  (contexture-commands-tests--all)
  (let* ((folder (make-temp-file "contexture-history" t))
         (file (expand-file-name "history" folder)))
    (unwind-protect
        (progn
          (let ((savehist-file file) (savehist-autosave-interval nil)
                (savehist-minibuffer-history-variables nil)
                (contexture-question-history nil))
            (savehist-mode)
            (unwind-protect
                (progn
                  (contexture-commands-tests--type
                   '("Why twice?")
                   '(cl-letf (((symbol-function 'contexture-conversation-code--bounds) #'ignore)
                              ((symbol-function 'contexture-conversation-code--ask-plainly) #'ignore))
                      (call-interactively #'contexture-send-region)))
                  (should (equal contexture-question-history '("Why twice?")))
                  (savehist-save))
              (savehist-mode -1)))
          (let ((contexture-question-history nil))
            (load file nil t)
            (should (equal contexture-question-history '("Why twice?")))))
      (delete-directory folder t))))

(ert-deftest contexture-commands-keep-no-secret-in-a-history ()
  (contexture-commands-tests--all)
  (cl-letf (((symbol-function 'contexture-provider--ask-server)
             (lambda (&rest _) '(nil "silent" :unavailable)))
            ((symbol-function 'contexture-provider--restore) #'ignore)
            ((symbol-function 'y-or-n-p) (lambda (prompt) (equal "n" (read-string prompt nil t)))))
    (should (contexture-commands-tests--type
             '("openai" "https://me:hunter2@localhost/" "play" "command" "echo hunter2" "" "m" "n")
             '(contexture-provider--read t)))
    (should-not (contexture-commands-tests--remembered "hunter2"))
    (contexture-commands-tests--type
     '("openai" "https://localhost/" "play" "environment variable" "hunter3" "" "m" "n")
     '(should (equal (plist-get (cadr (contexture-provider--read t)) :api-key-env) "hunter3")))
    (should-not (contexture-commands-tests--remembered "hunter3"))))

;;;; With packages that many people use

(ert-deftest contexture-commands-work-with-other-packages ()
  (let ((folder (or (getenv "PACKAGES_DIR")
                    (car (file-expand-wildcards "/usr/share/emacs/site-lisp/elpa"))
                    (ert-skip "PACKAGES_DIR is not set"))))
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

;;; In a new Emacs

(defun contexture-commands-tests--reads-p (name)
  "Return non-nil if this buffer reads the variable NAME where it may have no value."
  (goto-char (point-min))
  (cl-loop while (re-search-forward (format "\\_<%s\\_>" (regexp-quote name)) nil t)
           thereis (save-excursion
                     (not (or (nth 8 (syntax-ppss))
                              ;; Bound, set, called or quoted, or looked whether it is bound.
                              (looking-back (concat "\\(?:(\\|'\\|(setq \\|(defvar "
                                                    "\\|(bound-and-true-p[ \n]+\\)"
                                                    (regexp-quote name))
                                            (line-beginning-position 0)))))))

(defun contexture-commands-tests--unread (file)
  "Return variables of the package that FILE reads, and no file that it loads defines."
  (with-temp-buffer
    (insert-file-contents file)
    (delay-mode-hooks (emacs-lisp-mode))
    (let ((text (buffer-string))
          names)
      (while (re-search-forward "^(defvar \\(contexture-[^ )]+\\))" nil t)
        (push (match-string 1) names))
      (cl-loop for name in names
               for defined = (file-name-base (or (symbol-file (intern name) 'defvar) ""))
               unless (or (string-match-p (format "^(\\(?:cl-\\)?def[a-z-]+ %s[ \n]"
                                                  (regexp-quote name))
                                          text)
                          (string-search (format "(require '%s)" defined) text)
                          (not (contexture-commands-tests--reads-p name)))
               collect (list (file-name-base file) name)))))

(ert-deftest contexture-commands-read-no-variable-of-a-file-that-is-not-loaded ()
  "The first command in a new Emacs works as well as later ones."
  (contexture-commands-tests--all)
  (should-not (mapcan #'contexture-commands-tests--unread
                      (directory-files contexture-commands-tests--folder t
                                       "\\`contexture[a-z-]*\\.el\\'"))))

(provide 'contexture-commands-tests)
;;; contexture-commands-tests.el ends here
